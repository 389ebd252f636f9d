// A stand-in, as hip_runtime.h is: bfloat16 as its upper half of a float, rounded to nearest even.
#pragma once
#include "hip_runtime.h"

SMITH_BOTH unsigned short __smith_bf16_of(float v)
{
    const unsigned bits = __builtin_bit_cast(unsigned, v);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<unsigned short>((bits >> 16) | 0x40);
    return static_cast<unsigned short>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
SMITH_BOTH float __smith_bf16_to(unsigned short v) { return __builtin_bit_cast(float, static_cast<unsigned>(v) << 16); }

#define SMITH_BF16(Name)                                                                                       \
    struct Name {                                                                                              \
        unsigned short data;                                                                                   \
        Name() = default;                                                                                      \
        template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>                            \
        __host__ __device__ Name(T v) : data(__smith_bf16_of(static_cast<float>(v))) {}                        \
        __host__ __device__ operator float() const { return __smith_bf16_to(data); }                           \
        __host__ __device__ Name operator-() const { return Name(-static_cast<float>(*this)); }                \
        __host__ __device__ Name& operator+=(Name o) { return *this = Name(float(*this) + float(o)); }         \
        __host__ __device__ Name& operator-=(Name o) { return *this = Name(float(*this) - float(o)); }         \
        __host__ __device__ Name& operator*=(Name o) { return *this = Name(float(*this) * float(o)); }         \
        friend __host__ __device__ Name operator+(Name a, Name b) { return a += b; }                           \
        friend __host__ __device__ Name operator-(Name a, Name b) { return a -= b; }                           \
        friend __host__ __device__ Name operator*(Name a, Name b) { return a *= b; }                           \
        friend __host__ __device__ Name operator/(Name a, Name b) { return Name(float(a) / float(b)); }        \
        friend __host__ __device__ bool operator<(Name a, Name b) { return float(a) < float(b); }              \
        friend __host__ __device__ bool operator>(Name a, Name b) { return float(a) > float(b); }              \
        friend __host__ __device__ bool operator==(Name a, Name b) { return float(a) == float(b); }            \
        friend __host__ __device__ bool operator!=(Name a, Name b) { return float(a) != float(b); }            \
    };
SMITH_BF16(__hip_bfloat16)
struct __hip_bfloat162 {
    __hip_bfloat16 x, y;
};
typedef __hip_bfloat16 __nv_bfloat16;
typedef __hip_bfloat162 __nv_bfloat162;

SMITH_BOTH __hip_bfloat16 __float2bfloat16(float v) { return __hip_bfloat16(v); }
SMITH_BOTH float __bfloat162float(__hip_bfloat16 v) { return v; }
SMITH_BOTH __hip_bfloat162 __float22bfloat162_rn(float2 v) { return {__hip_bfloat16(v.x), __hip_bfloat16(v.y)}; }
SMITH_BOTH float2 __bfloat1622float2(__hip_bfloat162 v) { return float2(float(v.x), float(v.y)); }
SMITH_BOTH __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 x, __hip_bfloat16 y) { return {x, y}; }
SMITH_BOTH __hip_bfloat16 __ushort_as_bfloat16(unsigned short v) { __hip_bfloat16 r; r.data = v; return r; }
SMITH_BOTH unsigned short __bfloat16_as_ushort(__hip_bfloat16 v) { return v.data; }
SMITH_BOTH __hip_bfloat16 __hadd(__hip_bfloat16 a, __hip_bfloat16 b) { return a + b; }
SMITH_BOTH __hip_bfloat16 __hmul(__hip_bfloat16 a, __hip_bfloat16 b) { return a * b; }
