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
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/klog/v2"
	kjson "sigs.k8s.io/json"
)

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
	// The scheduler does not read templates.
	ResourceClaimTemplates []*resourcev1.ResourceClaimTemplate `json:"resourceClaimTemplates,omitempty"`
}

// Scenario is one line of input. Members that are only passed through stay raw.
type Scenario struct {
	ID       string          `json:"id"`
	Category json.RawMessage `json:"category"`
	Seed     json.RawMessage `json:"seed"`
	Config   json.RawMessage `json:"config"`
	Cluster  json.RawMessage `json:"cluster"`
	Pod      json.RawMessage `json:"pod"`
	Earlier  []*Earlier      `json:"earlier,omitempty"`
	Events   []Event         `json:"events,omitempty"`
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
	Error          *Failure                    `json:"error,omitempty"`
	Allocations    map[string][]Allocation     `json:"allocations,omitempty"`
	Bind           *Bind                       `json:"bind,omitempty"`
	PostFilter     *PostFilter                 `json:"postFilter,omitempty"`
	Hints          []string                    `json:"hints,omitempty"`
}

// Failure is an error of the cycle: the scheduler reports one of these texts.
type Failure struct {
	AnyOf []string `json:"anyOf"`
}

func strictInto(raw json.RawMessage, into any) error {
	unknown, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return err
	}
	return errors.Join(unknown...)
}

func record(sc *Scenario, admit bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	if admit {
		if err := sc.admit(); err != nil {
			return err
		}
	}
	if sc.Expect, err = sc.answer(false); err != nil || !sc.withClaims() {
		return err
	}
	// What does not depend on luck does not depend on the order of slices either.
	again, err := sc.answer(true)
	if err == nil && !bytes.Equal(again, sc.Expect) {
		err = errors.New("no single answer: another order of the slices gives another one")
	}
	if bytes.Contains(again, []byte("timed out trying to allocate devices")) {
		err = errors.New("no single answer: the search takes too long")
	}
	return err
}

// admit replaces the objects by what an API server makes of them.
func (sc *Scenario) admit() error {
	cluster, pod := &Cluster{}, &v1.Pod{}
	if err := errors.Join(strictInto(sc.Cluster, cluster), strictInto(sc.Pod, pod)); err != nil {
		return fmt.Errorf("cluster and pod: %w", err)
	}
	if err := admitAll(cluster, pod); err != nil {
		return fmt.Errorf("not valid: %w", err)
	}
	for _, earlier := range sc.Earlier {
		other := &v1.Pod{}
		if err := strictInto(earlier.Pod, other); err != nil {
			return fmt.Errorf("earlier: %w", err)
		}
		if err := admitPod(other); err != nil {
			return fmt.Errorf("not valid: %w", err)
		}
		var err error
		if earlier.Pod, err = prunedJSON(other); err != nil {
			return err
		}
	}
	var err error
	if sc.Cluster, err = prunedJSON(cluster); err != nil {
		return err
	}
	sc.Pod, err = prunedJSON(pod)
	return err
}

// answer lets a new scheduler decide.
func (sc *Scenario) answer(reversed bool) (json.RawMessage, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	cfg, err := loadConfig(sc.Config)
	if err != nil {
		return nil, err
	}
	cluster, pod := &Cluster{}, &v1.Pod{}
	if err := strictInto(sc.Cluster, cluster); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if err := strictInto(sc.Pod, pod); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	if reversed {
		slices.Reverse(cluster.ResourceSlices)
	}
	w, err := build(ctx, cfg, cluster, pod)
	if err != nil {
		return nil, err
	}
	for _, earlier := range sc.Earlier {
		if err := w.place(ctx, earlier); err != nil {
			return nil, err
		}
		if earlier.Allocations, err = pinnedAllocations(sc.Cluster, earlier.Allocations); err != nil {
			return nil, err
		}
	}
	expect := &Expect{Filter: map[string]*Verdict{}, Scores: map[string]map[string]int64{}}
	if len(sc.Events) > 0 {
		expect.Hints, err = w.hints(ctx, sc.Events)
	} else {
		expect, err = w.decide(ctx, sc.withClaims())
	}
	if err != nil {
		return nil, err
	}
	if err := pin(sc.Cluster, expect); err != nil {
		return nil, err
	}
	return encode(expect)
}

// withClaims tells a record of devices from one of nodes: the sample of claims
// among the latter has no allocations.
func (sc *Scenario) withClaims() bool {
	var lists map[string][]json.RawMessage
	if json.Unmarshal(sc.Cluster, &lists) != nil || string(sc.Category) == `"dynamic-resources"` {
		return false
	}
	return len(lists["deviceClasses"])+len(lists["resourceClaims"])+len(lists["resourceSlices"]) > 0
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
