"""What a kill leaves of saved states, and which of them a resumed run may trust."""

from __future__ import annotations

from secondlook.train.states import mark_whole, remove_halves, saved, whole


def save(run, step):
    state = saved(run, step)
    state.mkdir(parents=True)
    (state / "model.safetensors").write_bytes(b"weights")
    (state / "optimizer.pt").write_bytes(b"moments")
    return state


def test_the_newest_whole_state_comes_last(tmp_path):
    for step in (4, 12, 8):
        mark_whole(save(tmp_path, step))
    assert [path.name for path in whole(tmp_path)] == [f"checkpoint-{n}" for n in (4, 8, 12)]


def test_a_state_killed_while_it_was_saved_is_none(tmp_path):
    mark_whole(save(tmp_path, 4))
    save(tmp_path, 8)
    assert whole(tmp_path) == [saved(tmp_path, 4)]


def test_a_state_killed_while_it_was_removed_is_none(tmp_path):
    """The Trainer removes the second newest while the newest is not marked yet."""
    for step in (4, 8):
        mark_whole(save(tmp_path, step))
    (saved(tmp_path, 8) / "optimizer.pt").unlink()
    assert whole(tmp_path) == [saved(tmp_path, 4)]


def test_a_file_cut_short_makes_a_half(tmp_path):
    mark_whole(save(tmp_path, 4))
    (saved(tmp_path, 4) / "model.safetensors").write_bytes(b"wei")
    assert whole(tmp_path) == []


def test_halves_are_removed_and_only_they(tmp_path):
    mark_whole(save(tmp_path, 4))
    save(tmp_path, 8)
    remove_halves(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-4"]


def test_a_run_that_never_began_has_no_states(tmp_path):
    assert whole(tmp_path / "run") == []
