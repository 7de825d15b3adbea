"""The pictures of an ablation's sweeps."""

from secondlook.evaluate.ablation import Ablated
from secondlook.workflows.ablate import AblationResult
from secondlook.workflows.ablation_curves import draw


def test_an_axis_of_training_pairs_names_the_counts_alone(tmp_path):
    rows = tuple(
        Ablated(name, mean, deviation=None, seeds=1, delta=0.0, adjusted=None)
        for name, mean in {"whole": 0.32, "5,000 pairs": 0.3, "1,250 pairs": 0.23}.items()
    )
    places = {"whole": 40_000, "5,000 pairs": 5_000, "1,250 pairs": 1_248}
    assert not draw(AblationResult(tmp_path, "nDCG@10", rows), {"training pairs": places})
    drawn = (tmp_path / "pairs.svg").read_text("utf-8")
    assert all(f"<!-- {label} -->" in drawn for label in ("1,248", "5,000", "40,000", "one seed"))
    assert "times" not in drawn, "as in 2 × 10³, between the counts and over them"
