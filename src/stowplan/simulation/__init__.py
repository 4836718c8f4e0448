"""Clusters in virtual time: an engine and an embedded API server in one process, without HTTP and without a clock.

    problems = InputProblems()
    cluster = SimulatedCluster(RunSettings(seed=1))
    cluster.load(clusters.documents(dump, "dump.yaml", problems), problems)
    stream = table.from_csv(trace, Templates(), problems, file="trace.csv")
    run = Simulation(cluster, stream, profiles, RunSettings(seed=1, until=3600), problems=problems)
    run.run()
    figures(run)["waiting"]["p50"]

Readers take bytes, and nothing here reads a file, a clock or the environment. `stowplan simulate` is a caller.
"""
