"""What `secondlook bench` might have measured."""

from secondlook.scale.bench import Bench, Engine, Timing


def engine(name="openvino bf16", fixed=0.005, pair=0.004, lengths=(32, 128, 256)):
    """Times on a straight line: a pair's grows with its length."""
    return Engine(
        name=name,
        timings=tuple(
            Timing(length=at, pairs=n, seconds=(fixed + n * pair * at / 128,))
            for at in lengths
            for n in (1, 4, 16)
        ),
    )


def bench(*engines, first_look=None):
    return Bench(
        ranker="r",
        machine="m",
        cores=2,
        memory_gb=16,
        measured="2026-11-15",
        ranker_bytes=1,
        engines=engines or (engine(),),
        first_look=first_look,
    )
