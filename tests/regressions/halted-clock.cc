# CUBIC (RFC 9438). Wrong: the room that an ACK makes in the window counts as time in which the window is not used.
param wrong = 0
state top = 0    # the window before the last cut
state epoch = 0  # the instant since which it grows, 0: none
state k = 0
state last = 0   # the last ACK

on ack {
    if wrong > 0 and epoch > 0 and in_flight < cwnd { epoch = epoch + now - last }
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
    last = now
}

on loss {
    top = cwnd
    epoch = 0
    ssthresh = max(0.7 * cwnd, 2)
}

on idle {
    if epoch > 0 { epoch = epoch + now - last }
}
