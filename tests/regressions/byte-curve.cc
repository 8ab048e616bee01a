# CUBIC (RFC 9438). Wrong: the constant C, of packets, is used for a curve of bytes, which hardly rises.
param wrong = 0
state top = 0    # the window before the last cut
state epoch = 0  # the instant since which it grows, 0: none
state k = 0

on ack {
    if limited {
        if slow_start {
            cwnd = min(cwnd + acked, ssthresh)
        } else {
            let c = 0.4
            if wrong > 0 { c = 0.4 / mss }
            if epoch == 0 {
                epoch = now
                top = max(top, cwnd)
                k = cbrt((top - cwnd) / c)
            }
            let t = now + srtt - epoch - k
            let target = min(top + c * t * t * t, 1.5 * cwnd)
            cwnd = cwnd + acked * max(target - cwnd, 0.01) / cwnd
        }
    }
}

on loss {
    top = cwnd
    epoch = 0
    ssthresh = max(0.7 * cwnd, 2)
}
