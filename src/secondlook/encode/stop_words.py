"""English words too common to be worth a marker, and the pieces that apostrophes leave of them.

NLTK's English list, which the authors of MarkedBERT used.
"""

from __future__ import annotations

STOP_WORDS = frozenset(
    """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself
    she her hers herself it its itself they them their theirs themselves
    what which who whom this that these those when where why how
    am is are was were be been being have has had having do does did doing will should can
    a an the and but if or nor so because as until while than then
    of at by for with about against between into through during before after above below to from
    up down in out on off over under again further once
    here there all any both each few more most other some such no not only own same too very
    just now
    s t d ll m o re ve y ain aren couldn didn doesn don hadn hasn haven isn ma mightn mustn needn
    shan shouldn wasn weren won wouldn
    """.split()
)
