# CUBIC (RFC 9438) with fast convergence. Wrong: the cut is of the reduced maximum, 59.5 % of the window.
param wrong = 0
state top = 0
state epoch = 0
state k = 0

on ack {
    if limited {
        if slow_start {
            cwnd = min(cwnd + acked, ssthresh)
        } else {
            if epoch == 0 {
                epoch = now
                top = max(top, cwnd)
                k = cbrt((top - cwnd) / 0.4)
            }
            let t = now + srtt - epoch - k
            let target = min(top + 0.4 * t * t * t, 1.5 * cwnd)
            cwnd = cwnd + acked * max(target - cwnd, 0.01) / cwnd
        }
    }
}

on loss {
    epoch = 0
    ssthresh = max(0.7 * cwnd, 2)
    if cwnd < top {
        top = 0.85 * cwnd
        if wrong > 0 { ssthresh = max(0.7 * top, 2) }
    } else {
        top = cwnd
    }
}
