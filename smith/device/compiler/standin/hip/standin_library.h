// Functions of ROCm's device library in single precision that are one operation of the compiler; those that are not here
// (trigonometry, powers, double precision) stay calls, and a kernel that makes such a call has no figures.
#pragma once

#define SMITH_LIBRARY_1(name, how) \
    extern "C" __device__ __attribute__((always_inline)) inline float __ocml_##name##_f32(float x) { return how(x); }
SMITH_LIBRARY_1(ceil, __builtin_ceilf)
SMITH_LIBRARY_1(exp, __builtin_expf)
SMITH_LIBRARY_1(exp2, __builtin_exp2f)
SMITH_LIBRARY_1(fabs, __builtin_fabsf)
SMITH_LIBRARY_1(floor, __builtin_floorf)
SMITH_LIBRARY_1(log, __builtin_logf)
SMITH_LIBRARY_1(log10, __builtin_log10f)
SMITH_LIBRARY_1(log2, __builtin_log2f)
SMITH_LIBRARY_1(native_recip, 1.0f /)
SMITH_LIBRARY_1(nearbyint, __builtin_nearbyintf)
SMITH_LIBRARY_1(rint, __builtin_rintf)
SMITH_LIBRARY_1(round, __builtin_roundf)
SMITH_LIBRARY_1(rsqrt, __builtin_amdgcn_rsqf)
SMITH_LIBRARY_1(sqrt, __builtin_sqrtf)
SMITH_LIBRARY_1(trunc, __builtin_truncf)
extern "C" __device__ __attribute__((always_inline)) inline float __ocml_fma_f32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}
extern "C" __device__ __attribute__((always_inline)) inline float __ocml_fmax_f32(float a, float b)
{
    return __builtin_fmaxf(a, b);
}
extern "C" __device__ __attribute__((always_inline)) inline float __ocml_fmin_f32(float a, float b)
{
    return __builtin_fminf(a, b);
}
