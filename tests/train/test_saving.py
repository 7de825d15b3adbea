"""A run is saved every half minute, or less often where saving takes long."""

from types import SimpleNamespace

from secondlook.train.saving import SavesInTime


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def steps(saving, clock, seconds, *, save=1.0, validation=0.0, processes=1):
    """After which seconds it saved, in a hundred steps of so many seconds."""
    args, saved = SimpleNamespace(world_size=processes), []
    saving.on_train_begin(args, None, None)
    for _ in range(100):
        clock.now += seconds
        control = SimpleNamespace(should_save=False)
        saving.on_step_end(args, None, control)
        if validation:
            clock.now += validation
            saving.on_evaluate(args, None, control)
        if control.should_save:
            saved.append(clock.now)
            clock.now += save
            saving.on_save(args, None, control)
    return saved


def test_it_saves_every_half_minute():
    clock = Clock()
    saved = steps(SavesInTime(clock), clock, 7, save=0.0)
    assert saved[:3] == [35, 70, 105]


def test_long_steps_are_each_saved():
    clock = Clock()
    assert len(steps(SavesInTime(clock), clock, 60)) == 100


def test_saving_takes_a_twentieth_of_the_time_at_most():
    clock = Clock()
    saved = steps(SavesInTime(clock), clock, 10, save=6.0)
    assert 6 * len(saved) <= clock.now / 20 + 6
    assert len(saved) > 5


def test_a_validation_is_no_part_of_the_cost():
    clock = Clock()
    assert len(steps(SavesInTime(clock), clock, 10, validation=50)) == 50  # every minute


def test_several_processes_save_by_steps_alone():
    clock = Clock()
    assert steps(SavesInTime(clock), clock, 60, processes=2) == []
