"""Simulate 1,000 workers on limits and on background jobs: `python -m tests.simulate`.

It prints what they ask of the database. Time is simulated, the code is the product's.
"""

import time

from tests.simulate import jobs, limits

WORKERS = 1_000
LIMITS = (
    limits.Scenario("one team, far below its limit", WORKERS, 1, 500, 600_000),
    limits.Scenario("one team, above its limit", WORKERS, 1, 500, 600),
    limits.Scenario("one team, above, ticks of 5 s", WORKERS, 1, 500, 600, tick_s=5),
    limits.Scenario("1,000 users, far below", WORKERS, 1_000, 500, 600),
    limits.Scenario("one team, far below its limit", 100, 1, 5_000, 6_000_000),
    limits.Scenario("one team, far below its limit", 10, 1, 500, 600_000),
    limits.Scenario("one team, far below its limit", 1, 1, 500, 600_000),
)
JOBS = (
    jobs.Scenario("no jobs", WORKERS, 0),
    jobs.Scenario("100 jobs a second", WORKERS, 100),
    jobs.Scenario("500 jobs a second", WORKERS, 500),
)


def main() -> None:
    """Run the simulations and print them."""
    print("Leases on limits: requests, tokens a minute and concurrency, answers of 2 s")
    print(f"{'':32}{'workers':>9}{'asked/s':>9}{'passed/s':>9}{'calls/s':>9}{'claims/s':>10}")
    for scenario in LIMITS:
        began = time.monotonic()
        outcome = limits.run(scenario)
        passed, seconds = sum(outcome.passed.values()), scenario.seconds
        asked = passed + outcome.refused
        most = max(outcome.passed.values())
        assert most <= scenario.requests_per_minute, "a limit was exceeded"
        assert outcome.most_under_way <= scenario.concurrent_requests, "a limit was exceeded"
        print(
            f"{scenario.name:32}{scenario.workers:9,}{asked / seconds:9,.0f}"
            f"{passed / seconds:9,.0f}{outcome.calls / seconds:9,.0f}"
            f"{outcome.claims / seconds:10,.0f}   ({time.monotonic() - began:.0f} s)"
        )
    print("\nLeases on background jobs of 3 s, polled every 2 s")
    print(f"{'':32}{'workers':>9}{'put/s':>9}{'done/s':>9}{'calls/s':>9}{'wait p99':>10}")
    for job_scenario in JOBS:
        ended = jobs.run(job_scenario)
        seconds = job_scenario.seconds
        waits = sorted(ended.waits_s) or [0.0]
        print(
            f"{job_scenario.name:32}{job_scenario.workers:9,}{ended.put / seconds:9,.0f}"
            f"{ended.done / seconds:9,.0f}{ended.calls / seconds:9,.0f}"
            f"{waits[len(waits) * 99 // 100]:8.2f} s"
        )


if __name__ == "__main__":
    main()
