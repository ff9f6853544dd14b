; Made by `seedling helper export bind` from helper.yaml. Make it again when machines come or go.
$TTL 30
@ IN SOA helper.ocp4.example.com. root.ocp4.example.com. (
    1 ; serial: let it grow with every change
    3600 600 86400 5 )
@ IN NS helper.ocp4.example.com.
api IN A 192.168.100.1
api-int IN A 192.168.100.1
helper IN A 192.168.100.1
*.apps IN A 192.168.100.1
bootstrap IN A 192.168.100.10
master-0 IN A 192.168.100.11
master-1 IN A 192.168.100.12
master-2 IN A 192.168.100.13
worker-0 IN A 192.168.100.21
etcd-0 IN A 192.168.100.11
_etcd-server-ssl._tcp IN SRV 0 10 2380 etcd-0
etcd-1 IN A 192.168.100.12
_etcd-server-ssl._tcp IN SRV 0 10 2380 etcd-1
etcd-2 IN A 192.168.100.13
_etcd-server-ssl._tcp IN SRV 0 10 2380 etcd-2
