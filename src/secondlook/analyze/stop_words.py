"""Words too common to tell documents apart, by language."""

from __future__ import annotations

# Lucene's EnglishAnalyzer.ENGLISH_STOP_WORDS_SET.
ENGLISH = frozenset(
    "a an and are as at be but by for if in into is it no not of on or such that the their then "
    "there these they this to was will with".split()
)

_GERMAN = """
    aber alle allem allen aller alles als also am an ander andere anderem anderen anderer anderes
    auch auf aus bei beim bin bis bist da damit dann das dass daß dasselbe dazu dein deine deinem
    deinen deiner deines dem demselben den denn denselben der derer derselbe derselben des
    desselben dessen dich die dies diese dieselbe dieselben diesem diesen dieser dieses dir doch
    dort du durch ein eine einem einen einer eines einig einige einigem einigen einiger einiges er
    es etwas euch euer eure eurem euren eurer eures für gegen gewesen hab habe haben hat hatte
    hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist
    jede jedem jeden jeder jedes jene jenem jenen jener jenes jetzt kann kein keine keinem keinen
    keiner keines können könnte machen man manche manchem manchen mancher manches mein meine meinem
    meinen meiner meines mich mir mit muss musste nach nicht nichts noch nun nur ob oder ohne sehr
    sein seine seinem seinen seiner seines selbst sich sie sind so solche solchem solchen solcher
    solches soll sollte sondern sonst um und uns unser unsere unserem unseren unserer unseres unter
    viel vom von vor während war waren warst was weil weiter welche welchem welchen welcher welches
    wenn werde werden wie wieder will wir wird wirst wo wollen wollte würde würden zu zum zur zwar
    zwischen über
"""

_FRENCH = """
    à au aux avec ce ces cet cette dans de des du elle elles en et eu eux il ils je la le les leur
    leurs lui ma mais me même mes moi mon ne nos notre nous on ont ou où par pas pour qu que qui sa
    se ses son sont sur ta te tes toi ton tu un une vos votre vous y est été étée étées étés étant
    suis es sommes êtes étais était étions étiez étaient sera seront serait soit a ai as avons avez
    avais avait avions aviez avaient aura auront aurait ait c d j l m n s t
"""

_SPANISH = """
    a al algo algunas algunos ante antes como con contra cual cuando de del desde donde durante e
    el él ella ellas ellos en entre era eran es esa esas ese eso esos esta está están estas este
    esto estos fue fueron ha había han hasta hay la las le les lo los más me mi mis mucho muchos
    muy nada ni no nos nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para
    pero poco por porque que qué quien quienes se sea ser si sí sin sobre son su sus también tanto
    te tiene tienen todo todos tu tú tus un una uno unos vosotros y ya yo
"""

_ITALIAN = """
    a ad agli ai al alla alle allo anche avere aveva avevano c che chi ci coi col come con contro
    cui da dagli dai dal dalla dalle dallo degli dei del della delle dello di dove e è ed era erano
    essere fra gli ha hanno ho i il in io l la le lei li lo loro lui ma mi mia mie miei mio ne
    negli nei nel nella nelle nello noi non nostra nostre nostri nostro o per perché più quale
    quanta quante quanti quanto quella quelle quelli quello questa queste questi questo se sei si
    sia siamo sono sta stata state stati stato su sua sue sugli sui sul sulla sulle sullo suo suoi
    ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi vostra vostre vostri vostro
"""

_PORTUGUESE = """
    a à ao aos aquela aquelas aquele aqueles aquilo as às até com como da das de dela delas dele
    deles depois do dos e é ela elas ele eles em entre era eram essa essas esse esses esta está
    estão estas este estes eu foi foram há isso isto já lhe lhes mais mas me mesmo meu meus minha
    minhas muito na nas não nem no nos nós nossa nossas nosso nossos num numa o os ou para pela
    pelas pelo pelos por qual quando que quem se seja sem ser será seu seus só são sua suas também
    te tem têm teu teus tua tuas tu um uma umas uns você vocês
"""

_DUTCH = """
    aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een
    en er ge geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is
    ja je kan kon kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat
    onder ons ook op over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat
    werd wezen wie wil worden wordt zal ze zelf zich zij zijn zo zonder zou
"""

STOP_WORDS = {
    "english": ENGLISH,
    "german": frozenset(_GERMAN.split()),
    "french": frozenset(_FRENCH.split()),
    "spanish": frozenset(_SPANISH.split()),
    "italian": frozenset(_ITALIAN.split()),
    "portuguese": frozenset(_PORTUGUESE.split()),
    "dutch": frozenset(_DUTCH.split()),
}
