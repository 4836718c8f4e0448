package scheduler

// Part of tests/kube_tests, which copies it into pkg/scheduler of the fetched module k8s.io/kubernetes.
//
// With EXTERNAL_SCHEDULER set, New starts that program instead of leaving the work to this package. The program talks to a
// small HTTP proxy to the test's API server. The proxy answers nothing until Run is called, so the program's start-up time
// is not the test's, and it uses the test's own transport, so that faults which a test injects there reach the program.
// A test that asks for something which cannot be asked of another program is skipped; its message begins with ExternalNA.
//
//	EXTERNAL_SCHEDULER       the program and its first arguments, with spaces between
//	EXTERNAL_SCHEDULER_LOGS  the folder for its logs and configurations
//	EXTERNAL_STRIP           plugins to leave out of the configuration, with commas between
//	EXTERNAL_GANG            the program's name for the plugin GangScheduling, if it is another one
//	EXTERNAL_GATES           the feature gates that the program knows, with commas between

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	configv1 "k8s.io/kube-scheduler/config/v1"
	schedulerapi "k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/utils/clock"
)

// ExternalNA begins the message of what an external program cannot be asked.
const ExternalNA = "EXTERNAL-NA"

// ExternalTest is the name of the running test, for the logs; the test helpers set it.
var ExternalTest atomic.Value

// External says whether another program schedules.
func External() bool { return os.Getenv("EXTERNAL_SCHEDULER") != "" }

// ExternalSettle gives the other program's watches time to see what this process's caches have seen.
func ExternalSettle() {
	if External() {
		time.Sleep(500 * time.Millisecond)
	}
}

var externalCount atomic.Int32

type external struct {
	cmd     *exec.Cmd
	log     string
	seen    chan struct{} // closed at the program's first request
	open    chan struct{} // closed by Run: from then on requests pass
	done    chan struct{} // closed when the program has ended
	openOne sync.Once
	cancel  context.CancelFunc
}

func startExternal(ctx context.Context, options schedulerOptions) (*external, error) {
	if !External() {
		return nil, nil
	}
	strip := map[string]bool{}
	for _, n := range listed("EXTERNAL_STRIP") {
		strip[n] = true
	}
	var names []string
	for n := range options.frameworkOutOfTreeRegistry {
		if !strip[n] {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	switch {
	case len(names) > 0:
		return nil, fmt.Errorf("%s: plugins written in Go by the test: %s", ExternalNA, strings.Join(names, ", "))
	case options.kubeConfig == nil:
		return nil, fmt.Errorf("%s: no kubeconfig", ExternalNA)
	case options.frameworkCapturer != nil:
		return nil, fmt.Errorf("%s: the test captures the framework", ExternalNA)
	}
	if _, real := options.clock.(clock.RealClock); !real {
		return nil, fmt.Errorf("%s: a fake clock", ExternalNA)
	}

	dir := os.Getenv("EXTERNAL_SCHEDULER_LOGS")
	if dir == "" {
		dir = os.TempDir()
	}
	test, _ := ExternalTest.Load().(string)
	base := filepath.Join(dir, fmt.Sprintf("%s-%03d", strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '.'
	}, limit(test, 150)), externalCount.Add(1)))

	config, err := externalConfig(options, strip)
	if err != nil {
		return nil, fmt.Errorf("%s: the configuration cannot be written as v1: %w", ExternalNA, err)
	}
	if err := os.WriteFile(base+".yaml", config, 0o600); err != nil {
		return nil, err
	}

	ctx, cancel := context.WithCancel(ctx)
	e := &external{log: base + ".log", seen: make(chan struct{}), open: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	address, err := e.serve(ctx, options.kubeConfig)
	if err != nil {
		cancel()
		return nil, err
	}
	kubeconfig := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x","clusters":[{"name":"c","cluster":{"server":"http://%s"}}],`+
		`"users":[{"name":"u","user":{"token":"none"}}],"contexts":[{"name":"x","context":{"cluster":"c","user":"u"}}]}`, address)
	if err := os.WriteFile(base+".kubeconfig", []byte(kubeconfig), 0o600); err != nil {
		cancel()
		return nil, err
	}
	args := strings.Fields(os.Getenv("EXTERNAL_SCHEDULER"))
	args = append(args, "--config="+base+".yaml", "--kubeconfig="+base+".kubeconfig", "--leader-elect=false", "--secure-port=0", "-v=4",
		"--pod-max-in-unschedulable-pods-duration="+options.podMaxInUnschedulablePodsDuration.String())
	if gates := externalGates(); gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	out, err := os.Create(e.log)
	if err != nil {
		cancel()
		return nil, err
	}
	e.cmd = exec.Command(args[0], args[1:]...)
	e.cmd.Stdout, e.cmd.Stderr = out, out
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // Pdeathsig is about the thread that forked
		defer runtime.UnlockOSThread()
		err := e.cmd.Start()
		started <- err
		if err == nil {
			_ = e.cmd.Wait()
		}
		_ = out.Close()
		close(e.done)
	}()
	if err := <-started; err != nil {
		cancel()
		return nil, err
	}
	go func() {
		select {
		case <-ctx.Done():
			_ = syscall.Kill(-e.cmd.Process.Pid, syscall.SIGKILL)
		case <-e.done:
		}
		cancel()
	}()
	klog.FromContext(ctx).Info("External scheduler", "log", e.log, "test", test)
	select {
	case <-e.seen:
		return e, nil
	case <-e.done:
		cancel()
		text, _ := os.ReadFile(e.log)
		return nil, fmt.Errorf("EXTERNAL-ENDED: the external scheduler ended at its start: %s", bytes.TrimSpace(text))
	case <-time.After(90 * time.Second):
		cancel()
		return nil, errors.New("EXTERNAL-ENDED: the external scheduler asked nothing within 90 s")
	}
}

// Start is "go Run", and waits until an external program has read what there is: it must see what the test does next in its order.
func (sched *Scheduler) Start(ctx context.Context) {
	go sched.Run(ctx)
	for begin := time.Now(); sched.external != nil && time.Since(begin) < 60*time.Second; time.Sleep(50 * time.Millisecond) {
		if text, _ := os.ReadFile(sched.external.log); bytes.Contains(text, []byte("aches are synced")) {
			return
		}
	}
}

// ExternalAttempt is one line of the program's log about a pod: it found no place, or was bound.
type ExternalAttempt struct {
	Pod   string
	Bound bool
}

// ExternalAttempts reads from the program's log which of the pods it tried to place, in order.
func (sched *Scheduler) ExternalAttempts(namespace string, pods []string) []ExternalAttempt {
	text, _ := os.ReadFile(sched.external.log)
	var found []ExternalAttempt
	for _, line := range strings.Split(string(text), "\n") {
		bound := strings.Contains(line, "Successfully bound pod")
		if !bound && !strings.Contains(line, "Unable to schedule pod;") && !strings.Contains(line, "Error scheduling pod;") {
			continue
		}
		for _, pod := range pods {
			if strings.Contains(line, fmt.Sprintf("pod=%q", namespace+"/"+pod)) {
				found = append(found, ExternalAttempt{pod, bound})
			}
		}
	}
	return found
}

// externalGates are the gates that the program knows, as they are switched in this process.
func externalGates() string {
	var pairs []string
	for _, name := range listed("EXTERNAL_GATES") {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, utilfeature.DefaultFeatureGate.Enabled(featuregate.Feature(name))))
	}
	return strings.Join(pairs, ",")
}

// listed are the words of an environment variable, with commas between.
func listed(variable string) []string {
	return strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' })
}

func limit(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// serve passes requests on with the test's transport.
func (e *external) serve(ctx context.Context, config *restclient.Config) (string, error) {
	transport, err := restclient.TransportFor(config)
	if err != nil {
		return "", err
	}
	target, _, err := restclient.DefaultServerUrlFor(config)
	if err != nil {
		return "", err
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = target.Host
			r.Out.Header.Del("Authorization")
		},
		Transport:     transport,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if !errors.Is(err, context.Canceled) {
				http.Error(w, err.Error(), http.StatusBadGateway)
			}
		},
		ErrorLog: nil,
	}
	var once sync.Once
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{
		BaseContext: func(net.Listener) context.Context { return ctx },
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			once.Do(func() { close(e.seen) })
			select {
			case <-e.open:
			case <-r.Context().Done():
				return
			}
			if ctx.Err() != nil {
				return
			}
			defer func() { // ReverseProxy panics with ErrAbortHandler when the copy ends early; that is no failure here
				if p := recover(); p != nil && p != http.ErrAbortHandler {
					panic(p)
				}
			}()
			proxy.ServeHTTP(w, r)
		}),
	}
	go func() { _ = server.Serve(listener) }()
	go func() {
		<-ctx.Done()
		_ = server.Close()
	}()
	return listener.Addr().String(), nil
}

// run lets the program work until ctx ends.
func (e *external) run(ctx context.Context) {
	logger := klog.FromContext(ctx)
	e.openOne.Do(func() { close(e.open) })
	select {
	case <-ctx.Done():
	case <-e.done:
		if ctx.Err() == nil {
			text, _ := os.ReadFile(e.log)
			logger.Error(nil, "EXTERNAL-ENDED: the external scheduler ended by itself", "log", limit(string(text), 4000))
		}
	}
	e.cancel()
	<-e.done
}

func externalConfig(options schedulerOptions, strip map[string]bool) ([]byte, error) {
	var versioned configv1.KubeSchedulerConfiguration
	scheme.Scheme.Default(&versioned)
	var cfg schedulerapi.KubeSchedulerConfiguration
	if err := scheme.Scheme.Convert(&versioned, &cfg, nil); err != nil {
		return nil, err
	}
	cfg.LeaderElection.LeaderElect = false
	cfg.ClientConnection.QPS, cfg.ClientConnection.Burst = 1000, 2000
	cfg.Parallelism = options.parallelism
	cfg.PercentageOfNodesToScore = &options.percentageOfNodesToScore
	// A configuration file must name at least one second; the options of the tests go around that check.
	cfg.PodInitialBackoffSeconds = max(options.podInitialBackoffSeconds, 1)
	cfg.PodMaxBackoffSeconds = max(options.podMaxBackoffSeconds, cfg.PodInitialBackoffSeconds)
	cfg.Extenders = options.extenders
	cfg.Profiles = nil
	for _, p := range options.profiles {
		p := *p.DeepCopy()
		if p.Plugins != nil {
			for _, s := range []*schedulerapi.PluginSet{&p.Plugins.PreEnqueue, &p.Plugins.QueueSort, &p.Plugins.PreFilter, &p.Plugins.Filter, &p.Plugins.PostFilter, &p.Plugins.PreScore,
				&p.Plugins.Score, &p.Plugins.Reserve, &p.Plugins.Permit, &p.Plugins.PreBind, &p.Plugins.Bind, &p.Plugins.PostBind, &p.Plugins.MultiPoint} {
				var kept []schedulerapi.Plugin
				for _, one := range s.Enabled {
					if !strip[one.Name] {
						kept = append(kept, one)
					}
				}
				s.Enabled = kept
			}
		}
		// The gates of alpha features put GangScheduling into the default plugins; another program may call its own differently.
		if other := os.Getenv("EXTERNAL_GANG"); other != "" && p.Plugins != nil {
			for i := range p.Plugins.MultiPoint.Enabled {
				if p.Plugins.MultiPoint.Enabled[i].Name == "GangScheduling" {
					p.Plugins.MultiPoint.Enabled[i].Name = other
					p.Plugins.QueueSort = schedulerapi.PluginSet{Enabled: []schedulerapi.Plugin{{Name: other}}, Disabled: []schedulerapi.Plugin{{Name: "*"}}}
				}
			}
		}
		cfg.Profiles = append(cfg.Profiles, p)
	}
	info, ok := apiruntime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), apiruntime.ContentTypeYAML)
	if !ok {
		return nil, errors.New("no YAML serializer")
	}
	var buffer bytes.Buffer
	err := scheme.Codecs.EncoderForVersion(info.Serializer, configv1.SchemeGroupVersion).Encode(&cfg, io.Writer(&buffer))
	return buffer.Bytes(), err
}
