package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	schedconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

const emptyConfig = `{"apiVersion":"kubescheduler.config.k8s.io/v1","kind":"KubeSchedulerConfiguration"}`

// world is a scheduler that has seen one cluster.
type world struct {
	sched    *scheduler.Scheduler
	profile  framework.Framework
	snapshot *internalcache.Snapshot
	factory  informers.SharedInformerFactory
	pod      *v1.Pod
	claims   *claimServer
	events   *eventList
	plugin   *dynamicresources.DynamicResources
}

// build lets a new scheduler see the cluster through informers and takes its
// snapshot; the profile is the one the pod asks for.
func build(ctx context.Context, cfg *schedconfig.KubeSchedulerConfiguration, c *Cluster, pod *v1.Pod) (*world, error) {
	var pods []*v1.Pod
	restoreDefaults(pod)
	for _, p := range c.Pods {
		restoreDefaults(p)
		if !finished(p) {
			pods = append(pods, p)
		}
	}
	for _, claim := range c.ResourceClaims {
		claim.ResourceVersion = "1"
	}
	client := fake.NewClientset()
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
	claims := newClaimServer(c.Namespaces, serve(factory, c.ResourceClaims), c.ResourceClaims)
	client.PrependReactor("*", "resourceclaims", claims.react)
	client.PrependReactor("patch", "pods", claims.react)
	serve(factory, c.ResourceSlices)
	serve(factory, c.DeviceClasses)
	serve(factory, []*resourcev1beta2.DeviceTaintRule{})
	serve(factory, []*schedulingv1alpha2.PodGroup{})

	all, said := int32(100), &eventList{said: make(chan struct{})}
	sched, err := scheduler.New(ctx, client, factory, nil,
		func(string) events.EventRecorderLogger { return said },
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
	plugin, err := claimsPlugin(ctx, cfg, pod.Spec.SchedulerName, profile)
	if err != nil {
		return nil, err
	}
	return &world{
		sched: sched, profile: profile, snapshot: snapshot, factory: factory, pod: pod,
		claims: claims, events: said, plugin: plugin,
	}, nil
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
