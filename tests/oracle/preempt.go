package main

import (
	"context"
	"fmt"
	"sort"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
)

// preempt asks the preemption plugin for every candidate, not only for the one
// it would take. Without any, the message is that of the PostFilter plugins.
// The dry run filters, and a filter may leave notes for PostFilter; so each has
// a cycle of its own.
func (w *world) preempt(ctx context.Context, out *Expect) error {
	c, err := w.cycle(ctx)
	if err != nil {
		return err
	}
	state, statuses := c.state, c.diagnosis.NodeToStatus
	args := &schedconfig.DefaultPreemptionArgs{MinCandidateNodesPercentage: 100, MinCandidateNodesAbsolute: 1}
	pl, err := defaultpreemption.New(ctx, args, w.profile, feature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate))
	if err != nil {
		return err
	}
	result := &Preemption{Candidates: map[string]Victims{}, Picked: []string{}}
	out.Preemption = result
	result.Eligible, result.Reason = pl.PodEligibleToPreemptOthers(ctx, w.pod, statuses.Get(w.pod.Status.NominatedNodeName))
	if result.Eligible {
		potential, err := statuses.NodesForStatusCode(w.snapshot.NodeInfos(), fwk.Unschedulable)
		if err != nil {
			return err
		}
		if len(potential) > 0 {
			pdbs, err := w.factory.Policy().V1().PodDisruptionBudgets().Lister().List(labels.Everything())
			if err != nil {
				return err
			}
			// More candidates than there are nodes: the search never stops early.
			// An error on one node leaves the others standing, as in the plugin.
			found, _, _ := pl.Evaluator.DryRunPreemption(ctx, state, w.pod, potential, pdbs, 0, int32(len(potential)+1))
			for _, c := range found {
				row := Victims{Victims: []string{}, PDBViolations: c.Victims().NumPDBViolations}
				for _, p := range c.Victims().Pods {
					row.Victims = append(row.Victims, p.Name)
				}
				result.Candidates[c.Name()] = row
			}
			if result.Picked, err = picks(ctx, pl.Evaluator, found); err != nil {
				return err
			}
		}
	}
	if len(result.Candidates) == 0 {
		fresh, err := w.cycle(ctx)
		if err != nil {
			return err
		}
		w.claims.dry = true
		defer func() { w.claims.dry = false }()
		_, s := w.profile.RunPostFilterPlugins(ctx, fresh.state, w.pod, fresh.diagnosis.NodeToStatus)
		result.Message = s.Message()
	}
	return nil
}

// picks finds every candidate the plugin may choose. The plugin breaks exact
// ties by map order, so its answer is one of the set; that is checked too.
func picks(ctx context.Context, ev *preemption.Evaluator, found []preemption.Candidate) ([]string, error) {
	names := []string{}
	if len(found) == 0 {
		return names, nil
	}
	best := found[0]
	for _, c := range found[1:] {
		if compare(rank(c.Victims()), rank(best.Victims())) < 0 {
			best = c
		}
	}
	for _, c := range found {
		if compare(rank(c.Victims()), rank(best.Victims())) == 0 {
			names = append(names, c.Name())
		}
	}
	sort.Strings(names)
	for range 16 {
		if one := ev.SelectCandidate(ctx, found); !sets.New(names...).Has(one.Name()) {
			return nil, fmt.Errorf("the recorder is wrong: picks %v lack the scheduler's %s", names, one.Name())
		}
	}
	return names, nil
}

// rank lists what a choice between candidates goes by, the smaller the better.
func rank(v *extenderv1.Victims) []int64 {
	first := v.Pods[0]
	var sum int64
	for _, p := range v.Pods {
		sum += int64(priority(p)) + 1<<31
	}
	count := int64(len(v.Pods))
	started := util.GetEarliestPodStartTime(v).UnixNano()
	return []int64{v.NumPDBViolations, int64(priority(first)), sum, count, -started}
}

func priority(p *v1.Pod) int32 {
	if p.Spec.Priority == nil {
		return 0
	}
	return *p.Spec.Priority
}

func compare(a, b []int64) int {
	for i := range a {
		if a[i] != b[i] {
			if a[i] < b[i] {
				return -1
			}
			return 1
		}
	}
	return 0
}
