// A stand-in for ROCm's header of this name, so that device code can be compiled where no ROCm is. It declares what
// kernels commonly use, in our own words; what is not here ends a compilation with the reason `stand_in`. Functions of
// the host are declared only: nothing is ever linked or run.
#pragma once
#define SMITH_STAND_IN 1

// Much of the standard library comes with ROCm's header, and code relies on it.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#define HIP_VERSION_MAJOR 6
#define HIP_VERSION_MINOR 4
#define HIP_VERSION_PATCH 0
#define HIP_VERSION 60400000

#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __smith_bounds_1(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __smith_bounds_2(threads, waves) \
    __attribute__((amdgpu_flat_work_group_size(1, threads), amdgpu_waves_per_eu(waves)))
#define __smith_bounds(one, two, which, ...) which
#define __launch_bounds__(...) __smith_bounds(__VA_ARGS__, __smith_bounds_2, __smith_bounds_1)(__VA_ARGS__)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define HIP_DYNAMIC_SHARED(type, name) extern __shared__ type name[];
#define HIP_KERNEL_NAME(...) __VA_ARGS__
#define HIP_SYMBOL(name) name

#define SMITH_DEVICE static inline __device__ __attribute__((always_inline))
#define SMITH_BOTH static inline __host__ __device__ __attribute__((always_inline))

#include "standin_vectors.h"

// Where a lane is.
#define SMITH_PLACE(Name, object, px, py, pz)                                        \
    struct Name {                                                                    \
        __declspec(property(get = get_x)) unsigned x;                                \
        __declspec(property(get = get_y)) unsigned y;                                \
        __declspec(property(get = get_z)) unsigned z;                                \
        __device__ __attribute__((always_inline)) unsigned get_x() const { return px; } \
        __device__ __attribute__((always_inline)) unsigned get_y() const { return py; } \
        __device__ __attribute__((always_inline)) unsigned get_z() const { return pz; } \
        __device__ operator dim3() const { return dim3(px, py, pz); }                \
        __device__ operator uint3() const { return uint3{px, py, pz}; }              \
    };                                                                               \
    extern const __device__ __attribute__((weak)) Name object;
SMITH_PLACE(__smith_thread, threadIdx, __builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(),
            __builtin_amdgcn_workitem_id_z())
SMITH_PLACE(__smith_block, blockIdx, __builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(),
            __builtin_amdgcn_workgroup_id_z())
SMITH_PLACE(__smith_block_dim, blockDim, __builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
            __builtin_amdgcn_workgroup_size_z())
SMITH_PLACE(__smith_grid_dim, gridDim, __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x(),
            __builtin_amdgcn_grid_size_y() / __builtin_amdgcn_workgroup_size_y(),
            __builtin_amdgcn_grid_size_z() / __builtin_amdgcn_workgroup_size_z())
static constexpr int warpSize = 64;

#include "standin_lanes.h"
#include "standin_library.h"
#include "standin_host.h"
