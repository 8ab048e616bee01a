# A rate rule after BBR. Wrong: an expiry of the timer forgets rate and round trip.
param wrong = 0
state rate = 0      # best delivery rate of the last two windows of rounds
state newer = 0
state rounds = 0
state base = 1e9    # least round trip
state started = 0

on round {
    rounds = rounds + 1
    if rounds >= 8 {
        rate = newer
        newer = 0
        rounds = 0
    }
}

on control {
    if delivery_rate > newer { newer = delivery_rate }
    if rtt > 0 { base = min(base, rtt) }
    let best = max(rate, newer)
    if recovering { started = 1 }
    if best > 0 and base < 1e8 {
        pacing = best
        if started == 0 { pacing = 2.885 * best }
        cwnd = max(2 * best * base, 4)
    }
}

on timeout {
    if wrong > 0 {
        rate = 0
        newer = 0
        base = 1e9
    }
}
