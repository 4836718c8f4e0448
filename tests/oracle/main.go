// Command recorder asks the real kube-scheduler what it would do.
//
// It reads scenarios (one JSON object a line, the form of the golden records)
// from standard input, runs the scheduler's own code on each of them in this
// process, and writes the scenario with `expect` filled in. Nothing of the
// scheduler's decisions is written down here: this program only builds the
// cluster, calls the extension points in order, and writes what they answer.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"k8s.io/kubernetes/pkg/scheduler/util"
	kjson "sigs.k8s.io/json"
)

const emptyConfig = `{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}`

// Cluster mirrors the `cluster` member of a scenario.
type Cluster struct {
	Namespaces             []*v1.Namespace                 `json:"namespaces,omitempty"`
	Nodes                  []*v1.Node                      `json:"nodes,omitempty"`
	Pods                   []*v1.Pod                       `json:"pods,omitempty"`
	Services               []*v1.Service                   `json:"services,omitempty"`
	ReplicationControllers []*v1.ReplicationController     `json:"replicationControllers,omitempty"`
	ReplicaSets            []*appsv1.ReplicaSet            `json:"replicaSets,omitempty"`
	StatefulSets           []*appsv1.StatefulSet           `json:"statefulSets,omitempty"`
	PodDisruptionBudgets   []*policyv1.PodDisruptionBudget `json:"podDisruptionBudgets,omitempty"`
	PersistentVolumes      []*v1.PersistentVolume          `json:"persistentVolumes,omitempty"`
	PersistentVolumeClaims []*v1.PersistentVolumeClaim     `json:"persistentVolumeClaims,omitempty"`
	StorageClasses         []*storagev1.StorageClass       `json:"storageClasses,omitempty"`
	CSINodes               []*storagev1.CSINode            `json:"csiNodes,omitempty"`
	CSIDrivers             []*storagev1.CSIDriver          `json:"csiDrivers,omitempty"`
	CSIStorageCapacities   []*storagev1.CSIStorageCapacity `json:"csiStorageCapacities,omitempty"`
	VolumeAttachments      []*storagev1.VolumeAttachment   `json:"volumeAttachments,omitempty"`
	ResourceClaims         []*resourcev1.ResourceClaim     `json:"resourceClaims,omitempty"`
	ResourceSlices         []*resourcev1.ResourceSlice     `json:"resourceSlices,omitempty"`
	DeviceClasses          []*resourcev1.DeviceClass       `json:"deviceClasses,omitempty"`
}

// Scenario is one line of input. Members that are only passed through stay raw.
type Scenario struct {
	ID       string          `json:"id"`
	Category json.RawMessage `json:"category"`
	Seed     json.RawMessage `json:"seed"`
	Config   json.RawMessage `json:"config"`
	Cluster  json.RawMessage `json:"cluster"`
	Pod      json.RawMessage `json:"pod"`
	Expect   json.RawMessage `json:"expect,omitempty"`
}

// Verdict is a rejection by one plugin.
type Verdict struct {
	Plugin  string   `json:"plugin"`
	Code    string   `json:"code"`
	Reasons []string `json:"reasons"`
}

// Victims are the pods one node would lose.
type Victims struct {
	Victims       []string `json:"victims"`
	PDBViolations int64    `json:"pdbViolations"`
}

// Preemption is the dry run of the preemption plugin.
type Preemption struct {
	Eligible   bool               `json:"eligible"`
	Reason     string             `json:"reason,omitempty"`
	Candidates map[string]Victims `json:"candidates"`
	Picked     []string           `json:"picked"`
	Message    string             `json:"message,omitempty"`
}

// Expect is the recorded decision.
type Expect struct {
	PreEnqueue     *Verdict                    `json:"preEnqueue,omitempty"`
	PreFilter      *Verdict                    `json:"prefilter"`
	PreFilterNodes *[]string                   `json:"prefilterNodes,omitempty"`
	Filter         map[string]*Verdict         `json:"filter"`
	Scores         map[string]map[string]int64 `json:"scores"`
	Best           []string                    `json:"best,omitempty"`
	Message        string                      `json:"message,omitempty"`
	Preemption     *Preemption                 `json:"preemption,omitempty"`
}

func verdict(s *fwk.Status) *Verdict {
	reasons := append([]string{}, s.Reasons()...)
	if s.Plugin() == names.NodeResourcesFit {
		reasons = sortScalarReasons(reasons)
	}
	return &Verdict{Plugin: s.Plugin(), Code: s.Code().String(), Reasons: reasons}
}

// sortScalarReasons sorts what NodeResourcesFit reports in map order.
func sortScalarReasons(reasons []string) []string {
	fixed := sets.New("Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")
	var head, tail []string
	for _, r := range reasons {
		if fixed.Has(r) {
			head = append(head, r)
		} else {
			tail = append(tail, r)
		}
	}
	sort.Strings(tail)
	return append(append([]string{}, head...), tail...)
}

func strictInto(raw json.RawMessage, into any) error {
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(unknown...)
}

func finished(p *v1.Pod) bool {
	return p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
}

// restoreDefaults puts back the defaults that the records leave out.
func restoreDefaults(p *v1.Pod) {
	if p.Spec.SchedulerName == "" {
		p.Spec.SchedulerName = v1.DefaultSchedulerName
	}
	if p.Spec.RestartPolicy == "" {
		p.Spec.RestartPolicy = v1.RestartPolicyAlways
	}
	if p.Status.Phase == "" {
		p.Status.Phase = v1.PodPending
		if p.Spec.NodeName != "" {
			p.Status.Phase = v1.PodRunning
		}
	}
}

func loadConfig(raw json.RawMessage) (*schedconfig.KubeSchedulerConfiguration, error) {
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage(emptyConfig)
	}
	obj, gvk, err := scheme.Codecs.UniversalDecoder().Decode(raw, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	cfg, ok := obj.(*schedconfig.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("configuration: unexpected kind %v", gvk)
	}
	cfg.APIVersion = gvk.GroupVersion().String()
	if errs := validation.ValidateKubeSchedulerConfiguration(cfg); errs != nil {
		return nil, fmt.Errorf("configuration: %w", errs)
	}
	return cfg, nil
}

// world is a scheduler that has seen one cluster.
type world struct {
	sched    *scheduler.Scheduler
	profile  framework.Framework
	snapshot *internalcache.Snapshot
	factory  informers.SharedInformerFactory
	pod      *v1.Pod
}

func build(ctx context.Context, cfg *schedconfig.KubeSchedulerConfiguration, c *Cluster, pod *v1.Pod) (*world, error) {
	var pods []*v1.Pod
	restoreDefaults(pod)
	for _, p := range c.Pods {
		restoreDefaults(p)
		if !finished(p) {
			pods = append(pods, p)
		}
	}
	var held []runtime.Object
	for _, claim := range c.ResourceClaims {
		held = append(held, claim)
	}
	client := fake.NewClientset(held...)
	factory := informers.NewSharedInformerFactory(client, 0)
	serve(factory, c.Namespaces)
	serve(factory, c.Nodes)
	podInformer := serve(factory, pods)
	// A requested node name must not look like a binding, so the incoming pod
	// is put before the listers only, and not before the event handlers.
	if pod.Spec.NodeName == "" {
		podInformer.objects = append(podInformer.objects, pod)
	}
	_ = podInformer.indexer.Add(pod)
	serve(factory, c.Services)
	serve(factory, c.ReplicationControllers)
	serve(factory, c.ReplicaSets)
	serve(factory, c.StatefulSets)
	serve(factory, c.PodDisruptionBudgets)
	serve(factory, c.PersistentVolumes)
	serve(factory, c.PersistentVolumeClaims)
	serve(factory, c.StorageClasses)
	serve(factory, c.CSINodes)
	serve(factory, c.CSIDrivers)
	serve(factory, c.CSIStorageCapacities)
	serve(factory, c.VolumeAttachments)
	serve(factory, c.ResourceClaims)
	serve(factory, c.ResourceSlices)
	serve(factory, c.DeviceClasses)
	serve(factory, []*resourcev1beta2.DeviceTaintRule{})
	serve(factory, []*schedulingv1alpha2.PodGroup{})

	all := int32(100)
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithComponentConfigVersion(cfg.APIVersion),
		scheduler.WithProfiles(cfg.Profiles...),
		scheduler.WithPercentageOfNodesToScore(&all),
		scheduler.WithParallelism(1),
	)
	if err != nil {
		return nil, err
	}
	profile, ok := sched.Profiles[pod.Spec.SchedulerName]
	if !ok {
		return nil, fmt.Errorf("no profile %q", pod.Spec.SchedulerName)
	}
	snapshot, ok := profile.SnapshotSharedLister().(*internalcache.Snapshot)
	if !ok {
		return nil, errors.New("the snapshot is of an unknown type")
	}
	if err := sched.Cache.UpdateSnapshot(klog.FromContext(ctx), snapshot); err != nil {
		return nil, err
	}
	return &world{sched: sched, profile: profile, snapshot: snapshot, factory: factory, pod: pod}, nil
}

func (w *world) decide(ctx context.Context) (*Expect, error) {
	out := &Expect{Filter: map[string]*Verdict{}, Scores: map[string]map[string]int64{}}
	pod, profile := w.pod, w.profile

	for _, pl := range profile.PreEnqueuePlugins() {
		if s := pl.PreEnqueue(ctx, pod); !s.IsSuccess() {
			if !s.IsRejected() {
				return nil, fmt.Errorf("PreEnqueue %s: %w", pl.Name(), s.AsError())
			}
			out.PreEnqueue = verdict(s.WithPlugin(pl.Name()))
			return out, nil
		}
	}

	nodes, err := w.snapshot.NodeInfos().List()
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		out.Message = scheduler.ErrNoNodesAvailable.Error()
		return out, nil
	}

	state := framework.NewCycleState()
	diagnosis := framework.Diagnosis{NodeToStatus: framework.NewDefaultNodeToStatus()}
	var feasible []fwk.NodeInfo
	narrowed, status, narrowing := profile.RunPreFilterPlugins(ctx, state, pod)
	switch {
	case status.IsSuccess():
		excluded := fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
			fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(narrowing)))
		if !narrowed.AllNodes() {
			named := sets.List(narrowed.NodeNames)
			out.PreFilterNodes = &named
			diagnosis.NodeToStatus.SetAbsentNodesStatus(excluded)
		}
		for _, info := range nodes {
			name := info.Node().Name
			if !narrowed.AllNodes() && !narrowed.NodeNames.Has(name) {
				out.Filter[name] = verdict(excluded)
				continue
			}
			s := profile.RunFilterPluginsWithNominatedPods(ctx, state, pod, info)
			switch {
			case s.IsSuccess():
				out.Filter[name] = nil
				feasible = append(feasible, info)
			case s.IsRejected():
				out.Filter[name] = verdict(s)
				diagnosis.NodeToStatus.Set(name, s)
			default:
				return nil, fmt.Errorf("Filter %s on %s: %w", s.Plugin(), name, s.AsError())
			}
		}
	case status.IsRejected():
		out.PreFilter = verdict(status)
		diagnosis.NodeToStatus.SetAbsentNodesStatus(status)
		diagnosis.PreFilterMsg = status.Message()
	default:
		return nil, fmt.Errorf("PreFilter %s: %w", status.Plugin(), status.AsError())
	}

	if len(feasible) > 0 {
		return out, w.score(ctx, state, feasible, out)
	}

	out.Message = (&framework.FitError{Pod: pod, NumAllNodes: len(nodes), Diagnosis: diagnosis}).Error()
	if err := w.crossCheck(ctx, out.Message); err != nil {
		return nil, err
	}
	for _, pl := range profile.ListPlugins().PostFilter.Enabled {
		if pl.Name == names.DefaultPreemption {
			return out, w.preempt(ctx, state, diagnosis.NodeToStatus, out)
		}
	}
	return out, nil
}

// crossCheck compares the message with the one of the scheduler's own cycle.
// They differ where the cycle tries the incoming pod's nominated node although
// PreFilter excluded it by name.
func (w *world) crossCheck(ctx context.Context, message string) error {
	info, err := framework.NewPodInfo(w.pod)
	if err != nil {
		return nil // an invalid affinity term: the cycle itself ignores this
	}
	_, err = w.sched.SchedulePod(ctx, w.profile, framework.NewCycleState(), &framework.QueuedPodInfo{PodInfo: info})
	if err == nil || err.Error() != message {
		return fmt.Errorf("no single answer: the message %q differs from the scheduler's own cycle: %v", message, err)
	}
	return nil
}

func (w *world) score(ctx context.Context, state fwk.CycleState, feasible []fwk.NodeInfo, out *Expect) error {
	if s := w.profile.RunPreScorePlugins(ctx, state, w.pod, feasible); !s.IsSuccess() {
		return fmt.Errorf("PreScore %s: %w", s.Plugin(), s.AsError())
	}
	scored, s := w.profile.RunScorePlugins(ctx, state, w.pod, feasible)
	if !s.IsSuccess() {
		return fmt.Errorf("Score %s: %w", s.Plugin(), s.AsError())
	}
	weights := map[string]int64{}
	for _, pl := range w.profile.ListPlugins().Score.Enabled {
		weights[pl.Name] = int64(pl.Weight)
	}
	for _, node := range scored {
		row := map[string]int64{"total": node.TotalScore}
		for _, p := range node.Scores {
			row[p.Name] = p.Score / weights[p.Name]
		}
		out.Scores[node.Name] = row
		if len(out.Best) > 0 {
			top := out.Scores[out.Best[0]]["total"]
			if node.TotalScore < top {
				continue
			}
			if node.TotalScore > top {
				out.Best = nil
			}
		}
		out.Best = append(out.Best, node.Name)
	}
	sort.Strings(out.Best)
	return nil
}

func (w *world) preempt(ctx context.Context, state fwk.CycleState, statuses *framework.NodeToStatus, out *Expect) error {
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
		_, s := w.profile.RunPostFilterPlugins(ctx, state, w.pod, statuses)
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

func record(sc *Scenario, admit bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg, err := loadConfig(sc.Config)
	if err != nil {
		return err
	}
	cluster, pod := &Cluster{}, &v1.Pod{}
	if err := strictInto(sc.Cluster, cluster); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	if err := strictInto(sc.Pod, pod); err != nil {
		return fmt.Errorf("pod: %w", err)
	}
	if admit {
		if err := admitAll(cluster, pod); err != nil {
			return fmt.Errorf("not valid: %w", err)
		}
		if sc.Cluster, err = prunedJSON(cluster); err != nil {
			return err
		}
		if sc.Pod, err = prunedJSON(pod); err != nil {
			return err
		}
		cluster, pod = &Cluster{}, &v1.Pod{}
		if err := errors.Join(strictInto(sc.Cluster, cluster), strictInto(sc.Pod, pod)); err != nil {
			return err
		}
	}
	w, err := build(ctx, cfg, cluster, pod)
	if err != nil {
		return err
	}
	expect, err := w.decide(ctx)
	if err != nil {
		return err
	}
	sc.Expect, err = encode(expect)
	return err
}

func encode(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(buf.Bytes()), nil
}

func run(in io.Reader, out io.Writer, admit, drop bool) error {
	reader, writer := bufio.NewReaderSize(in, 1<<20), bufio.NewWriterSize(out, 1<<20)
	defer writer.Flush()
	var readErr error
	for readErr == nil {
		var line []byte
		line, readErr = reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			sc := &Scenario{}
			if err := json.Unmarshal(line, sc); err != nil {
				return err
			}
			var row any = sc
			if err := record(sc, admit); err != nil {
				if drop {
					fmt.Fprintf(os.Stderr, "%s: %v\n", sc.ID, err)
					continue
				}
				row = map[string]string{"id": sc.ID, "error": strings.TrimSpace(err.Error())}
			}
			text, err := encode(row)
			if err != nil {
				return err
			}
			writer.Write(append(text, '\n'))
		}
	}
	if readErr != io.EOF {
		return readErr
	}
	return nil
}

func main() {
	admit := flag.Bool("admit", false, "pass every object through API defaulting and validation first")
	drop := flag.Bool("drop", false, "leave out scenarios that end in an error, and name them on standard error")
	flag.Parse()
	quiet := flag.NewFlagSet("klog", flag.PanicOnError)
	klog.InitFlags(quiet)
	_ = quiet.Parse([]string{"-logtostderr=false", "-alsologtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
	if err := run(os.Stdin, os.Stdout, *admit, *drop); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
