// flanneld with the two backends that build without cgo: host-gw on one layer-2 network, vxlan elsewhere.
// Upstream's main also registers udp, whose C code would make the release depend on a C library. The subnet manager is
// always the Kubernetes API; flags keep upstream's names.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flannel-io/flannel/pkg/backend"
	_ "github.com/flannel-io/flannel/pkg/backend/hostgw"
	_ "github.com/flannel-io/flannel/pkg/backend/vxlan"
	"github.com/flannel-io/flannel/pkg/ip"
	"github.com/flannel-io/flannel/pkg/ipmatch"
	"github.com/flannel-io/flannel/pkg/subnet"
	"github.com/flannel-io/flannel/pkg/subnet/kube"
	"github.com/flannel-io/flannel/pkg/trafficmngr"
	"github.com/flannel-io/flannel/pkg/trafficmngr/iptables"
	"github.com/flannel-io/flannel/pkg/trafficmngr/nftables"
	log "k8s.io/klog/v2"
)

var (
	_              = flag.Bool("kube-subnet-mgr", true, "accepted for upstream's manifests; the Kubernetes API is the only subnet manager")
	kubeAPI        = flag.String("kube-api-url", "", "Kubernetes API server; not needed in a pod")
	kubeconfig     = flag.String("kubeconfig-file", "", "kubeconfig; not needed in a pod")
	prefix         = flag.String("kube-annotation-prefix", "flannel.alpha.coreos.com", "prefix of the Node annotations")
	netConf        = flag.String("net-config-path", "/etc/kube-flannel/net-conf.json", "network configuration")
	iface          = flag.String("iface", "", "interface (name or address) between nodes; default: that of the default route")
	publicIP       = flag.String("public-ip", "", "address other nodes reach this one by")
	ipMasq         = flag.Bool("ip-masq", false, "masquerade traffic that leaves the pod network")
	forwardRules   = flag.Bool("iptables-forward-rules", true, "accept forwarded pod traffic")
	resync         = flag.Int("iptables-resync", 5, "seconds between checks of the rules")
	subnetFile     = flag.String("subnet-file", "/run/flannel/subnet.env", "where subnet and MTU are written")
	netUnavailable = flag.Bool("set-node-network-unavailable", true, "clear NetworkUnavailable on the Node when ready")
	healthz        = flag.String("healthz-ip", "127.0.0.1", "address of /healthz")
	healthzPort    = flag.Int("healthz-port", 0, "port of /healthz, which answers 200 once the backend runs; 0: none")
)

func main() {
	log.InitFlags(nil)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil && ctx.Err() == nil {
		log.Exitf("flanneld: %v", err)
	}
}

func run(ctx context.Context) error {
	manager, err := kube.NewSubnetManager(ctx, *kubeAPI, *kubeconfig, *prefix, *netConf, *netUnavailable)
	if err != nil {
		return fmt.Errorf("subnet manager: %w", err)
	}
	config, err := manager.GetNetworkConfig(ctx)
	if err != nil {
		return fmt.Errorf("network configuration %s: %w", *netConf, err)
	}
	external, err := externalInterface(ctx, manager, config)
	if err != nil {
		return fmt.Errorf("interface between nodes: %w", err)
	}
	driver, err := backend.NewManager(ctx, manager, external).GetBackend(config.BackendType)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	network, err := driver.RegisterNetwork(ctx, &wg, config)
	if err != nil {
		return fmt.Errorf("registering the network: %w", err)
	}
	if err := rules(ctx, &wg, config, network); err != nil {
		return fmt.Errorf("packet rules: %w", err)
	}
	lease := network.Lease()
	if err := manager.HandleSubnetFile(*subnetFile, config, *ipMasq, lease.Subnet, lease.IPv6Subnet, network.MTU()); err != nil {
		return fmt.Errorf("writing %s: %w", *subnetFile, err)
	}
	wg.Add(1)
	go func() { defer wg.Done(); network.Run(ctx) }()
	if *healthzPort > 0 {
		serveHealthz(ctx, &wg)
	}
	log.Infof("running backend %s, subnet %s", config.BackendType, lease.Subnet)
	if err := manager.CompleteLease(ctx, lease, &wg); err != nil {
		return fmt.Errorf("lease: %w", err)
	}
	wg.Wait()
	return nil
}

func externalInterface(ctx context.Context, manager subnet.Manager, config *subnet.Config) (*backend.ExternalInterface, error) {
	stack, err := ipmatch.GetIPFamily(config.EnableIPv4, config.EnableIPv6)
	if err != nil {
		return nil, err
	}
	public := ipmatch.PublicIPOpts{PublicIP: *publicIP}
	stored, stored6 := manager.GetStoredPublicIP(ctx)
	if stored != "" {
		public.PublicIP = stored
	}
	public.PublicIPv6 = stored6
	match := *iface
	if match == "" {
		match = public.PublicIP
	}
	return ipmatch.LookupExtIface(match, "", "", stack, public)
}

func rules(ctx context.Context, wg *sync.WaitGroup, config *subnet.Config, network backend.Network) error {
	var manager trafficmngr.TrafficManager = &iptables.IPTablesManager{}
	if config.EnableNFTables {
		manager = &nftables.NFTablesManager{}
	}
	if err := manager.Init(ctx, wg); err != nil {
		return err
	}
	if *ipMasq {
		no6 := ip.IP6Net{IP: (*ip.IP6)(big.NewInt(0))}
		err := manager.SetupAndEnsureMasqRules(ctx, config.Network, previous("FLANNEL_SUBNET"), previous("FLANNEL_NETWORK"),
			config.IPv6Network, no6, no6, network.Lease(), *resync)
		if err != nil {
			return err
		}
	}
	if *forwardRules {
		manager.SetupAndEnsureForwardRules(ctx, config.Network, config.IPv6Network, *resync)
	}
	return nil
}

// previous is a network of the subnet file that an earlier run wrote, so that its rules can be replaced.
func previous(key string) ip.IP4Net {
	content, _ := os.ReadFile(*subnetFile)
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), key+"="); found {
			if _, cidr, err := net.ParseCIDR(value); err == nil {
				return ip.FromIPNet(cidr)
			}
		}
	}
	return ip.IP4Net{}
}

func serveHealthz(ctx context.Context, wg *sync.WaitGroup) {
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Addr: net.JoinHostPort(*healthz, fmt.Sprint(*healthzPort)), Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	wg.Add(2)
	go func() { defer wg.Done(); <-ctx.Done(); _ = server.Close() }()
	go func() {
		defer wg.Done()
		if err := server.ListenAndServe(); err != http.ErrServerClosed {
			log.Exitf("healthz: %v", err)
		}
	}()
}
