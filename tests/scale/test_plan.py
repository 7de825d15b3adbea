from dataclasses import replace

import numpy as np
import pytest

from benched import bench, engine
from secondlook.errors import MalformedInput, SecondlookError
from secondlook.scale import planner as planning
from secondlook.scale.bench import Engine, FirstLook, Timing, read_bench
from secondlook.scale.levers import levers
from secondlook.scale.planner import Demand, Infeasible, Planner
from secondlook.scale.prices import Machine, Prices, read_prices
from secondlook.scale.vector_costs import VectorCosts

PRICES = Prices(
    dated="2026-11",
    core_efficiency=1.0,
    machines={
        "small": Machine(cores=2, memory_gb=4, hourly=1.0),
        "large": Machine(cores=16, memory_gb=32, hourly=8.5),
    },
)
SLOW = Demand(qps=10, candidates=50, p99=2.0, corpus=10**6)
LOOK = FirstLook(name="x", documents=10**6, query_seconds=0.02, jitter=0.5, index_bytes=400)


def test_times_on_a_line_give_the_line_back():
    fixed, pair = engine().costs(128)
    assert (fixed, pair) == (pytest.approx(0.005), pytest.approx(0.004))
    assert engine().costs(192)[1] == pytest.approx(0.006)
    with pytest.raises(SecondlookError, match="256 tokens, not 512"):
        engine().costs(512)


def test_a_lax_demand_takes_cheap_machines_and_a_tight_one_large_machines():
    planner = Planner(bench(), PRICES)
    lax = planner.plan(SLOW, engine())
    assert lax.second.machine == "small"
    tight = planner.plan(replace(SLOW, p99=0.1), engine())
    assert tight.second.machine == "large"
    assert tight.p99 <= 0.1
    assert tight.monthly > lax.monthly


def test_a_fleet_holds_its_p99_and_one_machine_less_does_not_carry_the_work_idle():
    made = Planner(bench(), PRICES).plan(replace(SLOW, qps=200), engine())
    assert made.p99 <= 2.0
    assert made.p50 < made.p99
    assert 0.5 < made.second.load < 1  # with the spare machine down


def test_the_same_demand_gives_the_same_plan():
    assert Planner(bench(), PRICES).plan(SLOW, engine()) == Planner(bench(), PRICES).plan(
        SLOW, engine()
    )


def test_what_no_machine_can_do_is_refused_with_the_reason():
    with pytest.raises(
        Infeasible, match=r"50 candidates of 128 tokens alone take 30 ms .* on large"
    ):
        Planner(bench(), PRICES).plan(replace(SLOW, p99=0.02), engine())


def test_a_measured_first_look_is_sharded_copied_and_waited_for():
    planner = Planner(bench(first_look=LOOK), PRICES)
    made = planner.plan(replace(SLOW, corpus=10**8), engine())
    alone = Planner(bench(), PRICES).plan(SLOW, engine())
    assert made.first is not None
    assert made.first.shards > 1
    assert made.first.load < 1
    assert made.first.memory_gb >= 10**8 * 400 * made.first.copies / 1e9
    assert made.storage_gb == pytest.approx(80)
    assert alone.p50 < made.p50
    assert made.p99 <= 2.0


def test_more_passages_take_more_of_the_first_look_only():
    planner = Planner(bench(first_look=LOOK), PRICES)
    small, large = (planner.plan(replace(SLOW, corpus=n), engine()) for n in (10**6, 10**8))
    assert large.first.cores > 10 * small.first.cores
    assert large.offline.weigh == pytest.approx(100 * small.offline.weigh, rel=0.01)


def test_levers_stand_by_what_they_save_and_a_slower_engine_is_none():
    engines = engine(), engine("onnx int8", pair=0.012)
    planner = Planner(bench(*engines), PRICES)
    demand = replace(SLOW, qps=100)
    made = planner.plan(demand, engines[0])
    pulled = levers(planner, demand, engines[0], made)
    assert [lever.saved for lever in pulled] == sorted((p.saved for p in pulled), reverse=True)
    assert {"depth", "cascade", "shorter", "cache"} == {lever.name for lever in pulled}
    slow = planner.plan(demand, engines[1])
    assert levers(planner, demand, engines[1], slow)[0].name in ("engine", "cascade")


def test_levers_say_what_makes_an_infeasible_demand_feasible():
    planner = Planner(bench(), PRICES)
    ways = levers(planner, replace(SLOW, p99=0.028), engine(), None)
    assert "depth" in {lever.name for lever in ways}
    assert "cache" not in {lever.name for lever in ways}


def test_training_is_estimated_only_where_torch_was_measured():
    assert Planner(bench(), PRICES).plan(SLOW, engine()).offline.train is None
    torch = engine("torch fp32", pair=0.02)
    made = Planner(bench(engine(), torch), PRICES).plan(SLOW, engine())
    assert made.offline.train == pytest.approx(15e6 * 3 * 0.02 / 3600, rel=0.01)


def test_chunks_are_those_of_the_server():
    queue = pytest.importorskip("secondlook.serve.queue")
    assert queue._CHUNK_SECONDS == planning.CHUNK_SECONDS
    assert queue._FEWEST_TOKENS == planning.CHUNK_TOKENS
    scoring = Planner(bench(), PRICES).scoring(PRICES.machines["small"], engine(), SLOW)
    assert scoring.turn == queue._TURN
    assert scoring.chunk == int(0.25 / 0.004) or scoring.chunk == 4096 // 128


def test_the_example_of_prices_is_read_and_a_wrong_key_is_refused(tmp_path, request):
    example = request.config.rootpath / "examples" / "prices.toml"
    assert read_prices(example).machines["compute-16"].cores == 16
    wrong = tmp_path / "p.toml"
    wrong.write_text(example.read_text().replace("hourly", "hourley"))
    with pytest.raises(SecondlookError, match="did you mean 'hourly'"):
        read_prices(wrong)
    with pytest.raises(MalformedInput, match=r"examples/prices\.toml"):
        read_prices(tmp_path / "none.toml")


def test_a_bench_survives_its_file(tmp_path):
    made = bench(first_look=LOOK)
    (tmp_path / "bench.json").write_text(made.model_dump_json())
    assert read_bench(tmp_path / "bench.json") == made
    (tmp_path / "bench.json").write_text("{}")
    with pytest.raises(MalformedInput, match="secondlook bench"):
        read_bench(tmp_path / "bench.json")


def test_jitter_is_the_scatter_of_the_same_work():
    times = tuple(np.random.default_rng(1).normal(1.0, 0.1, 200).tolist())
    timings = tuple(Timing(length=8, pairs=n, seconds=times) for n in (1, 2))
    assert Engine(name="x", timings=timings).jitter == pytest.approx(0.1, rel=0.15)


def test_vectors_take_memory_disk_and_hours():
    """Ten million of 384 bytes, 144 of links and a row of 388: twice 5.28 and 9.16 GB."""
    planner = Planner(bench(first_look=LOOK), PRICES)
    without = replace(SLOW, corpus=10**7)
    plain = planner.plan(without, engine())
    made = planner.plan(replace(without, vectors=VectorCosts("int8", 384)), engine())
    assert made.vector_memory_gb == pytest.approx(10.56)
    assert made.storage_gb - plain.storage_gb == pytest.approx(18.32)
    assert made.first.memory_gb >= plain.first.memory_gb
    assert made.offline.encode == made.offline.weigh
    assert (plain.offline.encode, plain.offline.graphs) == (None, None)
    assert plain.vector_memory_gb is None
    alone = Planner(bench(), PRICES).plan(replace(SLOW, vectors=VectorCosts("fp32")), engine())
    assert alone.vector_memory_gb == pytest.approx(2 * (4 * 384 + 144) / 1e3)


def test_vectors_are_linked_by_all_cores_and_searched_beside_the_words():
    """Ten million take 38 graphs; what a query spends there counts as work of the first stage."""
    costs, planner = VectorCosts("int8", 384), Planner(bench(first_look=LOOK), PRICES)
    without = replace(SLOW, corpus=10**7)
    plain, made = (
        planner.plan(demand, engine()) for demand in (without, replace(without, vectors=costs))
    )
    spent = costs.search_seconds(10**7, without.candidates)
    assert spent == pytest.approx(10 * costs.search_seconds(10**6, without.candidates))
    assert costs.search_seconds(10**7, 1000) > spent
    assert replace(costs, dimension=768).search_seconds(10**7, 50) == pytest.approx(2 * spent)
    assert made.first.load * made.first.cores == pytest.approx(
        plain.first.load * plain.first.cores + without.qps * spent
    )
    machine = PRICES.machines[made.second.machine]
    assert made.offline.graphs * 3600 * machine.cores == pytest.approx(costs.build_seconds(10**7))
