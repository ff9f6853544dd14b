# What the initramfs and preinit share: words, the kernel's command line, the network card. Read with `.`; runs in busybox' shell too.
#   In: /proc/cmdline (on a real machine), /sys/class/net.  Out: a card with an address, its name in /run/node-card.

# A container has no kernel command line of its own. The other side is `lab` or `machine`.
kind() { if [ -n "$container" ]; then echo lab; else echo machine; fi; }

# On a real machine by the kernel's log: it reaches every console, and the journal.
say() {
    if [ "$(kind)" = lab ]; then
        echo "$(date -u +%FT%T.%3NZ) ${0##*/}: $*"
    else
        echo "<5>$(date -u +%FT%TZ) ${0##*/}: $*" > /dev/kmsg
        # to a person who has started this by hand
        [ -n "$BOOTING" ] || [ ! -t 2 ] || echo "$*" >&2
    fi
}

# argument NAME...: the value of the first of these names that the kernel was given; its last value, as the kernel does it
argument() {
    [ "$(kind)" = machine ] || return 1
    for name; do
        found=
        for word in $(cat /proc/cmdline); do
            case $word in "$name"=*) found=$word ;; esac
        done
        [ -z "$found" ] || { echo "${found#*=}"; return 0; }
    done
    return 1
}
# arguments NAME: all its values
arguments() {
    [ "$(kind)" = machine ] || return 0
    for word in $(cat /proc/cmdline); do
        case $word in "$1"=*) echo "${word#*=}" ;; esac
    done
}
# flag NAME: whether it was given at all
flag() {
    [ "$(kind)" = machine ] || return 1
    for word in $(cat /proc/cmdline); do
        case $word in "$1" | "$1"=*) return 0 ;; esac
    done
    return 1
}

# Names of the network cards to try: a container's one, the one the firmware booted from (BOOTIF), the one `ip=` names, else all real ones.
cards() {
    if [ "$(kind)" = lab ]; then echo eth0; return; fi
    want=$(argument BOOTIF | tr A-F- a-f:)
    for card in /sys/class/net/*; do
        [ "$(cat "$card/address")" != "${want#*:}" ] || { echo "${card##*/}"; return; }
    done
    named=$(argument ip | cut -s -d: -f6)
    [ -z "$named" ] || { [ ! -e "/sys/class/net/$named" ] || echo "$named"; return; }
    for card in /sys/class/net/*; do
        [ ! -e "$card/device" ] || [ "$(cat "$card/type")" != 1 ] || echo "${card##*/}"
    done
}

# ip=ADDRESS::GATEWAY:MASK:NAME:CARD:none with nameserver=ADDRESS, as CoreOS takes them
static() {
    given=$(argument ip) || return 1
    case $given in *:*:*:*) ;; *) return 1 ;; esac
    field() { echo "$given" | cut -d: -f"$1"; }
    interface=$1 ip=$(field 1) router=$(field 3) mask=$(field 4) hostname=$(field 5) serverid= search= domain= dns=$(arguments nameserver)
    [ -n "$ip" ] || return 1
    export interface ip router mask hostname serverid search domain dns
    /usr/local/sbin/udhcpc-script bound && : > /run/node-static
}

# lease CARD: three packets, a second apart; a server that is not up yet costs no more than a second
lease() {
    busybox udhcpc -q -n -f -t 3 -T 1 -A 0 -i "$1" -s /usr/local/sbin/udhcpc-script -O search -O hostname >/run/udhcpc.log 2>&1
}

# lease6 CARD: an address by DHCPv6, once a router says that there are some; then the client has done its work, since it is for good
lease6() {
    dhclient -6 -1 -D LL -sf /usr/local/sbin/dhclient6-script -cf /run/dhclient6.conf -lf /run/dhclient6.leases -pf /run/dhclient6.pid \
        "$1" >>/run/dhclient6.log 2>&1 || return 1
    kill "$(cat /run/dhclient6.pid)"
}
# prepare6 CARD, before it is up: a node forwards, and takes its way out from advertisements all the same. Nobody else has its addresses
# in a lab, so the kernel need not ask around for a second before it uses one.
prepare6() {
    echo 2 > "/proc/sys/net/ipv6/conf/$1/accept_ra"
    echo 0 > "/proc/sys/net/ipv6/conf/$1/accept_dad"
    echo 'timeout 3; also request dhcp6.name-servers, dhcp6.domain-search;' > /run/dhclient6.conf
}
# addresses CARD: of the families that the lab has; a real machine asks for IPv4
addresses() {
    case ${STACK:-ipv4} in
    ipv4) lease "$1" ;;
    dual) lease "$1" && lease6 "$1" ;;
    ipv6) lease6 "$1" && : > /run/node-static ;;
    esac
}

# Repeats until a card has its addresses.
network() {
    ip link set lo up
    while :; do
        card=
        for card in $(cards); do
            [ -z "$STACK" ] || prepare6 "$card"
            ip link set "$card" up || continue
            say "asking for an address on $card ($(cat "/sys/class/net/$card/address"))"
            if static "$card" || addresses "$card"; then
                echo "CARD=$card" > /run/node-card
                return
            fi
            say "no answer to DHCP on $card yet"
        done
        [ -n "$card" ] || { say "no network card yet"; sleep 1; }
    done
}
