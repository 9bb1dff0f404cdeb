"""The simulations themselves: their law holds, and their figures are those of the code."""

from tests.simulate import jobs, limits


def test_a_limit_is_reached_and_not_exceeded() -> None:
    scenario = limits.Scenario(
        "", workers=5, subjects=2, requests_per_s=100, requests_per_minute=60
    )
    outcome = limits.run(scenario)
    # Both users reach it in both minutes, but for what workers hold in reserve.
    assert len(outcome.passed) == 4
    assert all(50 <= passed <= 60 for passed in outcome.passed.values())
    assert outcome.most_under_way <= scenario.concurrent_requests
    assert outcome.refused > 1_000


def test_far_below_a_limit_calls_do_not_grow_with_requests() -> None:
    calls = []
    for requests_per_s in (100, 400):
        scenario = limits.Scenario("", 2, 1, requests_per_s, requests_per_minute=600_000)
        outcome = limits.run(scenario)
        assert outcome.refused == 0
        calls.append(outcome.calls / scenario.seconds)
    # Some a second, for each of two workers.
    assert max(calls) < 20


def test_jobs_are_done_by_any_worker() -> None:
    outcome = jobs.run(jobs.Scenario("", workers=20, jobs_per_s=10, seconds=30))
    assert outcome.put > 250
    assert outcome.put - outcome.done < 80
    assert max(outcome.waits_s) < 5
