/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * A policy's model in whole numbers: the kernel has no floating point for its programs.
 *
 * A value is a count of 65536ths ("Q16"). The weights of a layer have as many binary places as its sums leave room for.
 * The same operations in Python, bit for bit: python/dragstrip/authoring/policies/fixed.py.
 */
#pragma once

#define PLACES 16
#define ONE (1 << PLACES)

/* A step of the table of tanh is 1/64, up to 8. */
#define TANH_STEP_PLACES (PLACES - 6)
#define TANH_STEPS 512

/* Keeps the compiler from making branches of arithmetic: the verifier would follow both ways at each neuron. */
#define OPAQUE(x) asm volatile("" : "+r"(x))

static __always_inline __s64 tanh_of(const __s32 *table, __s64 x)
{
	__s64 sign = x >> 63, size, beyond;
	__u64 step, part;

	OPAQUE(sign);
	size = (x ^ sign) - sign;
	beyond = ((__s64)TANH_STEPS << TANH_STEP_PLACES) - 1 - size;
	beyond >>= 63;
	OPAQUE(beyond);
	size = (size & ~beyond) | ((((__s64)TANH_STEPS << TANH_STEP_PLACES) - 1) & beyond);
	step = (size >> TANH_STEP_PLACES) & (TANH_STEPS - 1);
	part = size & ((1 << TANH_STEP_PLACES) - 1);
	size = table[step] + (((__s64)(table[step + 1] - table[step]) * (__s64)part) >> TANH_STEP_PLACES);
	return (size ^ sign) - sign;
}

static __always_inline __s64 relu_of(__s64 x)
{
	__s64 positive = ~(x >> 63);

	OPAQUE(positive);
	return x & positive;
}

/* The sum of a neuron: bias and products have PLACES + places binary places. */
static __always_inline __s64 neuron(const __s64 *inputs, const __s32 *weights, __s64 bias, int count, int places)
{
	__s64 sum = bias;

#pragma clang loop unroll(disable)
	for (int input = 0; input < count; input++)
		sum += inputs[input] * weights[input];
	return sum >> places;
}

/* now * 2^x in the nearest whole number, for an x from -2 to 2; the table has 2^(step / 64) with 30 binary places. */
static __always_inline __u64 times_power(const __u32 *table, __u64 now, __s64 x)
{
	__u64 step = (x >> (PLACES - 6)) & 63, part = x & ((1 << (PLACES - 6)) - 1);
	__u64 factor = table[step] + (((__u64)(table[step + 1] - table[step]) * part) >> (PLACES - 6));
	__u64 places = 30 - (x >> PLACES);

	return (now * factor + (1ULL << (places - 1))) >> places;
}
