// Lanes of a wave, barriers, fences, atomics and bits.
#pragma once

SMITH_DEVICE int __lane_id() { return __builtin_amdgcn_mbcnt_hi(-1, __builtin_amdgcn_mbcnt_lo(-1, 0)); }

template <typename T> SMITH_DEVICE T __smith_from_lane(T value, int lane)
{
    static_assert(sizeof(T) <= 16, "a value of at most 16 bytes");
    constexpr int words = (sizeof(T) + 3) / 4;
    int held[words] = {};
    __builtin_memcpy(held, &value, sizeof(T));
    for (int i = 0; i < words; ++i) held[i] = __builtin_amdgcn_ds_bpermute(lane << 2, held[i]);
    __builtin_memcpy(&value, held, sizeof(T));
    return value;
}
template <typename T> SMITH_DEVICE T __shfl(T value, int lane, int width = warpSize)
{
    return __smith_from_lane(value, (lane & (width - 1)) + (__lane_id() & ~(width - 1)));
}
template <typename T> SMITH_DEVICE T __shfl_xor(T value, int mask, int width = warpSize)
{
    const int self = __lane_id(), lane = self ^ mask;
    return __smith_from_lane(value, lane >= ((self + width) & ~(width - 1)) ? self : lane);
}
template <typename T> SMITH_DEVICE T __shfl_up(T value, unsigned delta, int width = warpSize)
{
    const int self = __lane_id(), lane = self - static_cast<int>(delta);
    return __smith_from_lane(value, lane < (self & ~(width - 1)) ? self : lane);
}
template <typename T> SMITH_DEVICE T __shfl_down(T value, unsigned delta, int width = warpSize)
{
    const int self = __lane_id(), lane = self + static_cast<int>(delta);
    return __smith_from_lane(value, (self & (width - 1)) + static_cast<int>(delta) >= width ? self : lane);
}
#define SMITH_SYNC(name)                                                                                       \
    template <typename M, typename T, typename I> SMITH_DEVICE T name##_sync(M, T value, I by, int width = warpSize) \
    { return name(value, by, width); }
SMITH_SYNC(__shfl) SMITH_SYNC(__shfl_xor) SMITH_SYNC(__shfl_up) SMITH_SYNC(__shfl_down)

SMITH_DEVICE unsigned long long __ballot(int predicate) { return __builtin_amdgcn_ballot_w64(predicate != 0); }
SMITH_DEVICE unsigned long long __activemask() { return __builtin_amdgcn_read_exec(); }
SMITH_DEVICE int __any(int predicate) { return __ballot(predicate) != 0; }
SMITH_DEVICE int __all(int predicate) { return __ballot(predicate) == __activemask(); }
SMITH_DEVICE unsigned long long __ballot_sync(unsigned long long, int predicate) { return __ballot(predicate); }
SMITH_DEVICE int __any_sync(unsigned long long, int predicate) { return __any(predicate); }
SMITH_DEVICE int __all_sync(unsigned long long, int predicate) { return __all(predicate); }

SMITH_DEVICE void __syncthreads()
{
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
SMITH_DEVICE int __syncthreads_or(int predicate)
{
    __shared__ int any;
    if (__builtin_amdgcn_workitem_id_x() == 0) any = 0;
    __syncthreads();
    if (predicate) any = 1;
    __syncthreads();
    return any;
}
SMITH_DEVICE void __syncwarp(unsigned long long = ~0ull) { __builtin_amdgcn_wave_barrier(); }
SMITH_DEVICE void __threadfence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
SMITH_DEVICE void __threadfence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
SMITH_DEVICE void __threadfence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

SMITH_DEVICE int __popc(unsigned v) { return __builtin_popcount(v); }
SMITH_DEVICE int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
SMITH_DEVICE int __ffs(int v) { return __builtin_ffs(v); }
SMITH_DEVICE int __ffsll(long long v) { return __builtin_ffsll(v); }
SMITH_DEVICE int __clz(int v) { return v ? __builtin_clz(v) : 32; }
SMITH_DEVICE int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
SMITH_DEVICE unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
SMITH_DEVICE unsigned __umulhi(unsigned a, unsigned b) { return (static_cast<unsigned long long>(a) * b) >> 32; }
SMITH_DEVICE int __mul24(int a, int b) { return ((a << 8) >> 8) * ((b << 8) >> 8); }
template <typename T> SMITH_DEVICE T __ldg(const T* at) { return *at; }
SMITH_DEVICE long long clock64() { return __builtin_readcyclecounter(); }
SMITH_DEVICE long long wall_clock64() { return __builtin_readcyclecounter(); }

#define SMITH_ATOMIC(name, op)                                                                        \
    template <typename T, typename V> SMITH_DEVICE T name(T* at, V value)                             \
    { return op(at, static_cast<T>(value), __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }
SMITH_ATOMIC(atomicAdd, __hip_atomic_fetch_add)
SMITH_ATOMIC(atomicSub, __hip_atomic_fetch_sub)
SMITH_ATOMIC(atomicMax, __hip_atomic_fetch_max)
SMITH_ATOMIC(atomicMin, __hip_atomic_fetch_min)
SMITH_ATOMIC(atomicAnd, __hip_atomic_fetch_and)
SMITH_ATOMIC(atomicOr, __hip_atomic_fetch_or)
SMITH_ATOMIC(atomicXor, __hip_atomic_fetch_xor)
SMITH_ATOMIC(atomicExch, __hip_atomic_exchange)
template <typename T> SMITH_DEVICE T atomicCAS(T* at, T expected, T value)
{
    __hip_atomic_compare_exchange_strong(at, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                         __HIP_MEMORY_SCOPE_AGENT);
    return expected;
}

SMITH_DEVICE float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
SMITH_DEVICE int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
SMITH_DEVICE float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
SMITH_DEVICE unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }
