# A rate rule after BBR. Wrong: while it starts, its window has no bound.
param wrong = 0
state best = 0
state full = 0
state stalled = 0
state started = 0

on round {
    if started == 0 and not app_limited {
        if best >= 1.25 * full {
            full = best
            stalled = 0
        } else {
            stalled = stalled + 1
        }
        if stalled >= 3 { started = 1 }
    }
}

on control {
    best = max(best, delivery_rate)
    let bdp = best * min_rtt
    if started > 0 {
        pacing = best
        cwnd = max(2 * bdp, 4)
    } else {
        if best > 0 { pacing = 2.885 * best }
        if wrong > 0 { cwnd = cwnd + acked } else { cwnd = max(min(cwnd + acked, 2.885 * bdp), 10) }
    }
}
