package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// still is an informer on objects that nobody else changes. A handler that is
// added sees every object, in list order, before AddEventHandler returns: there
// is nothing to wait for and no order to guess. A change reaches all handlers
// before `change` returns.
type still struct {
	cache.SharedIndexInformer
	indexer  cache.Indexer
	objects  []any
	handlers []cache.ResourceEventHandler
}

// change reports an object that is new (old is nil), is different, or is gone (changed is nil).
func (s *still) change(old, changed any) {
	switch {
	case old == nil:
		_ = s.indexer.Add(changed)
		for _, h := range s.handlers {
			h.OnAdd(changed, false)
		}
	case changed == nil:
		_ = s.indexer.Delete(old)
		for _, h := range s.handlers {
			h.OnDelete(old)
		}
	default:
		_ = s.indexer.Update(changed)
		for _, h := range s.handlers {
			h.OnUpdate(old, changed)
		}
	}
}

type synced struct{ done chan struct{} }

func (synced) HasSynced() bool                       { return true }
func (s synced) HasSyncedChecker() cache.DoneChecker { return s }
func (synced) Name() string                          { return "still" }
func (s synced) Done() <-chan struct{}               { return s.done }

func isSynced() synced {
	s := synced{done: make(chan struct{})}
	close(s.done)
	return s
}

func (s *still) AddEventHandler(h cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, o := range s.objects {
		h.OnAdd(o, true)
	}
	s.handlers = append(s.handlers, h)
	return isSynced(), nil
}

func (s *still) AddEventHandlerWithResyncPeriod(h cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *still) AddEventHandlerWithOptions(h cache.ResourceEventHandler, _ cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(h)
}

func (s *still) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }
func (s *still) GetStore() cache.Store                                           { return s.indexer }
func (s *still) GetIndexer() cache.Indexer                                       { return s.indexer }
func (s *still) AddIndexers(i cache.Indexers) error                              { return s.indexer.AddIndexers(i) }
func (s *still) HasSynced() bool                                                 { return true }
func (s *still) HasSyncedChecker() cache.DoneChecker                             { return isSynced() }
func (s *still) Run(<-chan struct{})                                             {}
func (s *still) RunWithContext(context.Context)                                  {}
func (s *still) IsStopped() bool                                                 { return false }
func (s *still) SetTransform(cache.TransformFunc) error                          { return nil }

// serve makes the factory hand out these objects for their type.
func serve[T any, P interface {
	*T
	runtime.Object
}](factory informers.SharedInformerFactory, objects []P) *still {
	s := &still{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	for _, o := range objects {
		s.objects = append(s.objects, o)
		_ = s.indexer.Add(o)
	}
	factory.InformerFor(P(new(T)), func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer { return s })
	return s
}
