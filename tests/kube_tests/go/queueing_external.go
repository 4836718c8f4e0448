package queueing

// Part of tests/kube_tests, which copies it into test/integration/scheduler/queueing of the fetched module k8s.io/kubernetes.
//
// The table of TestCoreResourceEnqueue says which event wakes which pod. The queue of another program cannot be looked into;
// what comes of it can be seen from outside: which pods it tries again after the event. (Its log says so.)

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler"
	testutils "k8s.io/kubernetes/test/integration/util"
)

// runExternal does what the rest of RunTestCoreResourceEnqueue does by hand: the pods fail once, the event comes, and then
// just the pods that the case names must have been tried again. Attempts are counted in the program's log.
func runExternal(t *testing.T, tt *CoreResourceEnqueueTestCase, testCtx *testutils.TestContext) {
	var names []string
	for _, p := range tt.Pods {
		names = append(names, p.Name)
	}
	go testCtx.Scheduler.Run(testCtx.SchedulerCtx)
	watched := sets.New(names...).Union(tt.WantRequeuedPods).UnsortedList() // some pods are made by TriggerFn
	tried := func() []scheduler.ExternalAttempt {
		return testCtx.Scheduler.ExternalAttempts(testCtx.NS.Name, watched)
	}
	begin := time.Now()
	for tt.ExpectedInitialRejectingPhase != rejectingPhasePreEnqueue && len(pods(tried())) < len(names) {
		if time.Since(begin) > 30*time.Second {
			t.Fatalf("Not all of %v were tried: %v", names, tried())
		}
		time.Sleep(100 * time.Millisecond)
	}
	// Until nothing has been tried for two seconds.
	before, quiet := len(tried()), time.Now()
	for time.Since(quiet) < 2*time.Second {
		time.Sleep(100 * time.Millisecond)
		if now := len(tried()); now != before {
			before, quiet = now, time.Now()
		}
		if time.Since(begin) > 60*time.Second {
			t.Fatalf("Pods are tried again and again although nothing happens: %v", tried())
		}
	}
	if tt.ExpectedInitialRejectingPhase == rejectingPhasePreEnqueue && before > 0 {
		t.Fatalf("No pod was to be tried yet: %v", tried())
	}
	if _, err := tt.TriggerFn(testCtx); err != nil {
		t.Fatalf("Failed to trigger the event: %v", err)
	}
	triggered := time.Now()
	var requeued, first sets.Set[string]
	for {
		since := tried()[before:]
		requeued = pods(since).Union(binding(testCtx, tt.Pods))
		// A binding is an event too, and may rightly wake the others: what was tried only after one says nothing.
		first = sets.New[string]()
		for _, one := range since {
			first.Insert(one.Pod)
			if one.Bound {
				break
			}
		}
		// What shall happen has up to ten seconds, what shall not has three in which not to.
		passed := time.Since(triggered)
		if passed > 10*time.Second || passed > 3*time.Second && requeued.IsSuperset(tt.WantRequeuedPods) {
			break
		}
		time.Sleep(200 * time.Millisecond)
	}
	if !requeued.IsSuperset(tt.WantRequeuedPods) || !tt.WantRequeuedPods.IsSuperset(first) {
		t.Fatalf("Expect Pods %v to be requeued, but %v are requeued actually, %v before the first binding", tt.WantRequeuedPods, requeued, first)
	}
}

// binding are the pods whose volumes wait to be bound, as the scheduler has asked for: they have been tried, and nothing is in the log yet.
func binding(testCtx *testutils.TestContext, candidates []*v1.Pod) sets.Set[string] {
	found, asked := sets.New[string](), sets.New[string]()
	if volumes, err := testCtx.ClientSet.CoreV1().PersistentVolumes().List(testCtx.Ctx, metav1.ListOptions{}); err == nil {
		for _, v := range volumes.Items {
			if v.Spec.ClaimRef != nil && v.Annotations["pv.kubernetes.io/bound-by-controller"] != "" {
				asked.Insert(v.Spec.ClaimRef.Name)
			}
		}
	}
	if claims, err := testCtx.ClientSet.CoreV1().PersistentVolumeClaims(testCtx.NS.Name).List(testCtx.Ctx, metav1.ListOptions{}); err == nil {
		for _, c := range claims.Items {
			if c.Annotations["volume.kubernetes.io/selected-node"] != "" {
				asked.Insert(c.Name)
			}
		}
	}
	for _, p := range candidates {
		for _, v := range p.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && asked.Has(v.PersistentVolumeClaim.ClaimName) {
				found.Insert(p.Name)
			}
		}
	}
	return found
}

func pods(tried []scheduler.ExternalAttempt) sets.Set[string] {
	found := sets.New[string]()
	for _, one := range tried {
		found.Insert(one.Pod)
	}
	return found
}
