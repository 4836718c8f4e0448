"""kube-scheduler's own integration tests, with Stowplan in its place: `make kube-tests`.

Nobody of this project wrote these tests. Each starts a kube-apiserver in its own process, with etcd beside it, and
would start kube-scheduler there, too. The module k8s.io/kubernetes is fetched by Go, by name and version; a copy of it
is edited so that `scheduler.New` starts a program instead. Nothing of Kubernetes is in this repository.

    edits         which lines of the module are changed, and why
    go/           the Go files that are added: one starts the program, one judges by its log what its queue did
    source        the module's copy, edited
    build         one test program for each package, kept in a cache
    runner        runs a test program and collects how its tests ended (outcomes)
    expectations  what cannot be asked of another program, and which failures are known: expectations.yaml, with reasons
    conformance   writes the table of docs/conformance.md

What a test asks of the scheduler it also gets with Stowplan: the options of `scheduler.New` become a v1
KubeSchedulerConfiguration (written by kube-scheduler's own encoder), feature gates become `--feature-gates`, faults
that a test puts into its transport reach the program. Three things differ: a backoff of 0 s, which a file may not have,
is 1 s; where tests wait for kube-scheduler's cache, half a second is added; the program's start-up is not counted.
"""
