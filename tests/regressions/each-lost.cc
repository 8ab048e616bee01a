# A window rule. Wrong: every ACK that reports a loss cuts the window again.
param wrong = 0
state hold = 0  # no second cut before this instant

on control {
    if lost > 0 {
        if now >= hold or wrong > 0 {
            ssthresh = max(cwnd / 2, 2)
            cwnd = ssthresh
            hold = now + srtt
        }
    } else if limited {
        if cwnd < ssthresh { cwnd = cwnd + acked } else { cwnd = cwnd + acked / cwnd }
    }
}
