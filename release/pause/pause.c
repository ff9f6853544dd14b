// pause holds a pod's namespaces: it waits, reaps what is re-parented to it, and leaves on TERM or INT.
// No C library: the image is one small file, and a hundred pods cost next to nothing. Blocked signals reach process 1 even
// without a handler, so waiting for them is all there is.

enum { SYS_rt_sigprocmask = 14, SYS_exit = 60, SYS_wait4 = 61, SYS_rt_sigtimedwait = 128 };
enum { SIGINT = 2, SIGTERM = 15, SIGCHLD = 17, SIG_BLOCK = 0, WNOHANG = 1 };

static long call(long number, long a, long b, long c, long d) {
    long result;
    register long r10 __asm__("r10") = d;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10) : "rcx", "r11", "memory");
    return result;
}

void _start(void) {
    unsigned long signals = 1UL << (SIGINT - 1) | 1UL << (SIGTERM - 1) | 1UL << (SIGCHLD - 1);
    call(SYS_rt_sigprocmask, SIG_BLOCK, (long)&signals, 0, sizeof signals);
    for (;;) {
        long signal = call(SYS_rt_sigtimedwait, (long)&signals, 0, 0, sizeof signals);
        if (signal == SIGCHLD)
            while (call(SYS_wait4, -1, 0, WNOHANG, 0) > 0)
                ;
        if (signal == SIGINT || signal == SIGTERM)
            call(SYS_exit, 0, 0, 0, 0);
    }
}
