// Short vectors: the members and constructors that kernels use, and component-wise arithmetic.
#pragma once

template <typename T, unsigned N> struct HIP_vector_base;

#define SMITH_VECTOR_MEMBERS(T, N, bytes, ...)                          \
    template <> struct alignas(bytes) HIP_vector_base<T, N> {           \
        T __VA_ARGS__;                                                  \
        __host__ __device__ T& operator[](int i) { return (&x)[i]; }    \
        __host__ __device__ T operator[](int i) const { return (&x)[i]; } \
    };
template <typename T, unsigned N> struct HIP_vector_type : HIP_vector_base<T, N> {
    using value_type = T;
    HIP_vector_type() = default;
    template <typename... Some, typename = std::enable_if_t<sizeof...(Some) == N && (N > 1)>>
    __host__ __device__ constexpr HIP_vector_type(Some... some) : HIP_vector_base<T, N>{static_cast<T>(some)...} {}
    template <typename One, typename = std::enable_if_t<std::is_arithmetic_v<One>>, typename = void>
    __host__ __device__ HIP_vector_type(One one) { for (unsigned i = 0; i < N; ++i) (&this->x)[i] = static_cast<T>(one); }
#define SMITH_VECTOR_OP(op)                                                                             \
    __host__ __device__ HIP_vector_type& operator op##=(const HIP_vector_type& other)                    \
    { for (unsigned i = 0; i < N; ++i) (&this->x)[i] op##= (&other.x)[i]; return *this; }                \
    friend __host__ __device__ HIP_vector_type operator op(HIP_vector_type a, const HIP_vector_type& b)  \
    { return a op##= b; }
    SMITH_VECTOR_OP(+) SMITH_VECTOR_OP(-) SMITH_VECTOR_OP(*) SMITH_VECTOR_OP(/)
#undef SMITH_VECTOR_OP
};
#define SMITH_VECTORS(T, name)                                                        \
    SMITH_VECTOR_MEMBERS(T, 1, sizeof(T), x)                                          \
    SMITH_VECTOR_MEMBERS(T, 2, 2 * sizeof(T), x, y)                                   \
    SMITH_VECTOR_MEMBERS(T, 3, sizeof(T), x, y, z)                                    \
    SMITH_VECTOR_MEMBERS(T, 4, (4 * sizeof(T) > 16 ? 16 : 4 * sizeof(T)), x, y, z, w) \
    using name##1 = HIP_vector_type<T, 1>;                                            \
    using name##2 = HIP_vector_type<T, 2>;                                            \
    using name##3 = HIP_vector_type<T, 3>;                                            \
    using name##4 = HIP_vector_type<T, 4>;                                            \
    SMITH_BOTH name##2 make_##name##2(T x, T y) { return name##2(x, y); }             \
    SMITH_BOTH name##3 make_##name##3(T x, T y, T z) { return name##3(x, y, z); }     \
    SMITH_BOTH name##4 make_##name##4(T x, T y, T z, T w) { return name##4(x, y, z, w); }
SMITH_VECTORS(char, char)
SMITH_VECTORS(unsigned char, uchar)
SMITH_VECTORS(short, short)
SMITH_VECTORS(unsigned short, ushort)
SMITH_VECTORS(int, int)
SMITH_VECTORS(unsigned, uint)
SMITH_VECTORS(long, long)
SMITH_VECTORS(unsigned long, ulong)
SMITH_VECTORS(long long, longlong)
SMITH_VECTORS(unsigned long long, ulonglong)
SMITH_VECTORS(float, float)
SMITH_VECTORS(double, double)

struct dim3 {
    unsigned x, y, z;
    constexpr __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
