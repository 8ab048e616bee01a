//! Kernel memory taken by a frame.

/// `truesize` of a linear `sk_buff`: 256 bytes of descriptor, plus frame, 64 bytes of headroom and 320 of `skb_shared_info`
/// rounded up to a power of two as `kmalloc` does. It depends on the driver; a full frame has 2304 bytes here.
pub(crate) const fn truesize(len: u32) -> u64 {
    const DESCRIPTOR: u64 = 256;
    const HEADROOM_AND_SHARED_INFO: u64 = 64 + 320;
    DESCRIPTOR + (len as u64 + HEADROOM_AND_SHARED_INFO).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::truesize;

    #[test]
    fn frames_take_blocks_of_powers_of_two() {
        let cases =
            [(66, 768), (128, 768), (129, 1280), (1514, 2304), (1664, 2304), (9014, 16_640)];
        for (len, bytes) in cases {
            assert_eq!(truesize(len), bytes);
        }
    }
}
