//! Sets of flags in the bits of one number.

/// Makes a type of a set of flags: a number whose bits are the constants.
///
/// ```
/// dragstrip_units::flags! {
///     /// What a door may be.
///     pub struct Door: u8 {
///         /// Not shut.
///         OPEN = 1;
///         /// It has a key.
///         LOCKABLE = 2;
///     }
/// }
/// let door = Door::OPEN.with_if(Door::LOCKABLE, true);
/// assert!(door.has(Door::OPEN.with(Door::LOCKABLE)));
/// assert!(!door.without(Door::OPEN).any(Door::OPEN));
/// ```
#[macro_export]
macro_rules! flags {
    (
        $(#[$attribute:meta])*
        $vis:vis struct $name:ident: $bits:ty {
            $($(#[$meaning:meta])* $flag:ident = $value:expr;)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        $vis struct $name($bits);

        #[allow(dead_code, reason = "not every set is used in every way")]
        impl $name {
            $($(#[$meaning])* pub const $flag: Self = Self($value);)+

            /// Both sets together.
            #[inline]
            #[must_use]
            pub const fn with(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }

            /// The same with `other`, when `condition` holds.
            #[inline]
            #[must_use]
            pub const fn with_if(self, other: Self, condition: bool) -> Self {
                if condition { self.with(other) } else { self }
            }

            /// Those that are not in `other`.
            #[inline]
            #[must_use]
            pub const fn without(self, other: Self) -> Self {
                Self(self.0 & !other.0)
            }

            /// Those that are in `other` too.
            #[inline]
            #[must_use]
            pub const fn only(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }

            /// True when all of `other` are set.
            #[inline]
            #[must_use]
            pub const fn has(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// True when one of `other` is set.
            #[inline]
            #[must_use]
            pub const fn any(self, other: Self) -> bool {
                self.0 & other.0 != 0
            }

            /// Sets `other`.
            #[inline]
            pub const fn set(&mut self, other: Self) {
                self.0 |= other.0;
            }

            /// Clears `other`.
            #[inline]
            pub const fn clear(&mut self, other: Self) {
                self.0 &= !other.0;
            }
        }
    };
}

#[cfg(test)]
mod tests {
    crate::flags! {
        /// Three flags.
        struct Three: u32 {
            A = 1;
            B = 2;
            C = 65_536;
        }
    }

    #[test]
    fn sets_are_joined_cut_and_asked() {
        let two = Three::A.with(Three::C);
        assert!(two.has(Three::A) && two.has(two) && !two.has(Three::A.with(Three::B)));
        assert!(two.any(Three::A.with(Three::B)) && !two.any(Three::B));
        assert!(two.has(Three::default()) && !two.any(Three::default()), "nothing is in every set");
        assert_eq!(two.only(Three::C.with(Three::B)), Three::C);
        assert_eq!(two.without(Three::C), Three::A);
        assert_eq!(Three::A.with_if(Three::C, true), two);
        assert_eq!(Three::A.with_if(Three::C, false), Three::A);
    }

    #[test]
    fn a_flag_is_set_and_cleared_in_place() {
        let mut set = Three::A;
        set.set(Three::B.with(Three::C));
        set.clear(Three::A.with(Three::C));
        assert_eq!(set, Three::B);
    }
}
