package main

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericrequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/storage"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
	"k8s.io/kubernetes/pkg/registry/storage/volumeattachment"
)

// creator is the part of an API server's create strategy that is used here.
type creator interface {
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
}

// admit defaults an object and validates it by the API server's own rules. With
// prepare it also takes the form the create strategy gives it. The result is
// written back to versioned.
func admit(group, version, resource, namespace string, s creator, prepare bool, versioned, internal runtime.Object) error {
	ctx := genericrequest.WithNamespace(context.Background(), namespace)
	ctx = genericrequest.WithRequestInfo(ctx, &genericrequest.RequestInfo{
		IsResourceRequest: true, Verb: "create", APIGroup: group, APIVersion: version, Resource: resource, Namespace: namespace,
	})
	legacyscheme.Scheme.Default(versioned)
	if err := legacyscheme.Scheme.Convert(versioned, internal, nil); err != nil {
		return err
	}
	if prepare {
		s.PrepareForCreate(ctx, internal)
	}
	if errs := s.Validate(ctx, internal); len(errs) > 0 {
		return fmt.Errorf("%s: %w", resource, errs.ToAggregate())
	}
	return legacyscheme.Scheme.Convert(internal, versioned, nil)
}

func admitPod(p *v1.Pod) error {
	kept := p.DeepCopy()
	if err := admit("", "v1", "pods", p.Namespace, pod.Strategy, true, p, &core.Pod{}); err != nil {
		return fmt.Errorf("pod %s: %w", p.Name, err)
	}
	p.Status, p.DeletionTimestamp = kept.Status, kept.DeletionTimestamp
	return nil
}

// admitAll makes the objects look the way an API server would have stored them.
func admitAll(c *Cluster, incoming *v1.Pod) error {
	for _, p := range append([]*v1.Pod{incoming}, c.Pods...) {
		if err := admitPod(p); err != nil {
			return err
		}
	}
	for _, o := range c.Nodes {
		if err := admit("", "v1", "nodes", "", node.Strategy, false, o, &core.Node{}); err != nil {
			return err
		}
	}
	for _, o := range c.PersistentVolumes {
		if err := admit("", "v1", "persistentvolumes", "", persistentvolume.Strategy, false, o, &core.PersistentVolume{}); err != nil {
			return err
		}
	}
	for _, o := range c.PersistentVolumeClaims {
		kept := o.DeepCopy()
		if err := admit("", "v1", "persistentvolumeclaims", o.Namespace, persistentvolumeclaim.Strategy, false, o, &core.PersistentVolumeClaim{}); err != nil {
			return err
		}
		o.Status, o.DeletionTimestamp = kept.Status, kept.DeletionTimestamp
	}
	for _, o := range c.PodDisruptionBudgets {
		if err := admit("policy", "v1", "poddisruptionbudgets", o.Namespace, poddisruptionbudget.Strategy, false, o, &policy.PodDisruptionBudget{}); err != nil {
			return err
		}
	}
	for _, o := range c.StorageClasses {
		if err := admit("storage.k8s.io", "v1", "storageclasses", "", storageclass.Strategy, false, o, &storage.StorageClass{}); err != nil {
			return err
		}
	}
	for _, o := range c.CSINodes {
		if err := admit("storage.k8s.io", "v1", "csinodes", "", csinode.Strategy, false, o, &storage.CSINode{}); err != nil {
			return err
		}
	}
	for _, o := range c.CSIDrivers {
		if err := admit("storage.k8s.io", "v1", "csidrivers", "", csidriver.Strategy, false, o, &storage.CSIDriver{}); err != nil {
			return err
		}
	}
	for _, o := range c.CSIStorageCapacities {
		if err := admit("storage.k8s.io", "v1", "csistoragecapacities", o.Namespace, csistoragecapacity.Strategy, false, o, &storage.CSIStorageCapacity{}); err != nil {
			return err
		}
	}
	for _, o := range c.VolumeAttachments {
		if err := admit("storage.k8s.io", "v1", "volumeattachments", "", volumeattachment.Strategy, false, o, &storage.VolumeAttachment{}); err != nil {
			return err
		}
	}
	return admitDevices(c)
}

// admitDevices admits slices, classes and claims. A claim is created, and then
// gets its status by an update of the status, as in a cluster.
func admitDevices(c *Cluster) error {
	for _, o := range c.DeviceClasses {
		if err := admit("resource.k8s.io", "v1", "deviceclasses", "", deviceclass.Strategy, false, o, &resource.DeviceClass{}); err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
	}
	for _, o := range c.ResourceSlices {
		if err := admit("resource.k8s.io", "v1", "resourceslices", "", resourceslice.Strategy, false, o, &resource.ResourceSlice{}); err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
	}
	server := newClaimServer(c.Namespaces, &still{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)}, nil)
	for _, o := range c.ResourceClaims {
		kept := o.DeepCopy()
		if err := admit("resource.k8s.io", "v1", "resourceclaims", o.Namespace, server.spec, true, o, &resource.ResourceClaim{}); err != nil {
			return fmt.Errorf("%s: %w", o.Name, err)
		}
		o.DeletionTimestamp = nil
		created := server.store(nil, o)
		created.Status = kept.Status
		stored, err := server.update(created, "status")
		if err != nil {
			return err
		}
		o.Status, o.DeletionTimestamp = stored.Status, kept.DeletionTimestamp
	}
	return nil
}

// noise lists members that API defaulting adds and no scheduler looks at.
var noise = map[string]bool{
	"terminationMessagePath": true, "terminationMessagePolicy": true, "imagePullPolicy": true, "dnsPolicy": true,
	"terminationGracePeriodSeconds": true, "securityContext": true, "enableServiceLinks": true,
	"daemonEndpoints": true, "nodeInfo": true, "qosClass": true, "loadBalancer": true, "resizePolicy": true,
	"reclaimPolicy": true,
}

// deviceNoise lists those of devices: the stamp of a taint is the time of its defaulting.
var deviceNoise = map[string]bool{"timeAdded": true}

// metaNoise lists those of an object's metadata. The stamp of a class matters: the newest one stands for an extended
// resource; zero stamps are nil.
var metaNoise = map[string]bool{"generation": true, "deletionGracePeriodSeconds": true, "resourceVersion": true}

// prunedJSON encodes an object without noise and without empty members that
// mean nothing.
func prunedJSON(v any) (json.RawMessage, error) {
	text, err := encode(v)
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	prune(tree, noise)
	return encode(tree)
}

func prune(tree any, noise map[string]bool) {
	switch t := tree.(type) {
	case []any:
		for _, item := range t {
			prune(item, noise)
		}
	case map[string]any:
		for k, item := range t {
			if noise[k] || item == nil {
				delete(t, k)
				continue
			}
			switch k {
			case "metadata":
				prune(item, metaNoise)
			case "resourceSlices", "resourceClaims", "deviceClasses", "labels", "annotations":
				prune(item, deviceNoise) // other keys here are names that users choose
			default:
				prune(item, noise)
			}
			if m, ok := item.(map[string]any); ok && len(m) == 0 && (k == "status" || k == "resources") {
				delete(t, k)
			}
		}
		if t["restartPolicy"] == "Always" && t["containers"] != nil {
			delete(t, "restartPolicy")
		}
		if t["schedulerName"] == v1.DefaultSchedulerName && t["containers"] != nil {
			delete(t, "schedulerName")
		}
		if t["preemptionPolicy"] == string(v1.PreemptLowerPriority) {
			delete(t, "preemptionPolicy")
		}
	}
}
