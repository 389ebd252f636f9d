// A stand-in, as hip_runtime.h is: half precision over the compiler's own type.
#pragma once
#include "hip_runtime.h"

struct __half {
    _Float16 data;
    __half() = default;
    __host__ __device__ constexpr __half(_Float16 v) : data(v) {}
    template <typename T, typename = std::enable_if_t<std::is_arithmetic_v<T>>>
    __host__ __device__ constexpr __half(T v) : data(static_cast<_Float16>(v)) {}
    __host__ __device__ constexpr operator _Float16() const { return data; }
    __host__ __device__ constexpr operator float() const { return static_cast<float>(data); }
#define SMITH_HALF_OP(op)                                                                                  \
    __host__ __device__ __half& operator op##=(__half o) { data = data op o.data; return *this; }           \
    friend __host__ __device__ __half operator op(__half a, __half b) { return __half(static_cast<_Float16>(a.data op b.data)); }
    SMITH_HALF_OP(+) SMITH_HALF_OP(-) SMITH_HALF_OP(*) SMITH_HALF_OP(/)
#undef SMITH_HALF_OP
    __host__ __device__ __half operator-() const { return __half(static_cast<_Float16>(-data)); }
#define SMITH_HALF_COMPARE(op) friend __host__ __device__ bool operator op(__half a, __half b) { return a.data op b.data; }
    SMITH_HALF_COMPARE(<) SMITH_HALF_COMPARE(>) SMITH_HALF_COMPARE(<=) SMITH_HALF_COMPARE(>=) SMITH_HALF_COMPARE(==)
    SMITH_HALF_COMPARE(!=)
#undef SMITH_HALF_COMPARE
};
struct __half2 {
    __half x, y;
};
typedef __half half;
typedef __half2 half2;

SMITH_BOTH __half __float2half(float v) { return __half(v); }
SMITH_BOTH __half __float2half_rn(float v) { return __half(v); }
SMITH_BOTH float __half2float(__half v) { return v; }
SMITH_BOTH __half2 __halves2half2(__half x, __half y) { return {x, y}; }
SMITH_BOTH __half2 __half2half2(__half x) { return {x, x}; }
SMITH_BOTH __half2 __floats2half2_rn(float x, float y) { return {__half(x), __half(y)}; }
SMITH_BOTH __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
SMITH_BOTH float2 __half22float2(__half2 v) { return float2(static_cast<float>(v.x), static_cast<float>(v.y)); }
SMITH_BOTH __half __low2half(__half2 v) { return v.x; }
SMITH_BOTH __half __high2half(__half2 v) { return v.y; }
SMITH_BOTH float __low2float(__half2 v) { return v.x; }
SMITH_BOTH float __high2float(__half2 v) { return v.y; }
SMITH_BOTH __half __ushort_as_half(unsigned short v) { return __half(__builtin_bit_cast(_Float16, v)); }
SMITH_BOTH unsigned short __half_as_ushort(__half v) { return __builtin_bit_cast(unsigned short, v.data); }
SMITH_BOTH __half __hadd(__half a, __half b) { return a + b; }
SMITH_BOTH __half __hsub(__half a, __half b) { return a - b; }
SMITH_BOTH __half __hmul(__half a, __half b) { return a * b; }
SMITH_BOTH __half __hdiv(__half a, __half b) { return a / b; }
SMITH_BOTH __half __hneg(__half a) { return -a; }
SMITH_DEVICE __half __hfma(__half a, __half b, __half c)
{
    return __half(static_cast<_Float16>(__builtin_fmaf16(a.data, b.data, c.data)));
}
SMITH_DEVICE __half __habs(__half a) { return __half(static_cast<_Float16>(__builtin_fabsf16(a.data))); }
SMITH_BOTH bool __hgt(__half a, __half b) { return a > b; }
SMITH_BOTH bool __hlt(__half a, __half b) { return a < b; }
SMITH_BOTH __half __hmax(__half a, __half b) { return a > b ? a : b; }
SMITH_BOTH __half __hmin(__half a, __half b) { return a < b ? a : b; }
SMITH_BOTH __half2 __hadd2(__half2 a, __half2 b) { return {a.x + b.x, a.y + b.y}; }
SMITH_BOTH __half2 __hsub2(__half2 a, __half2 b) { return {a.x - b.x, a.y - b.y}; }
SMITH_BOTH __half2 __hmul2(__half2 a, __half2 b) { return {a.x * b.x, a.y * b.y}; }
SMITH_DEVICE __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }
