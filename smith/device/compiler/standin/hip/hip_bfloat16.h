// A stand-in, as hip_runtime.h is: the older type for bfloat16.
#pragma once
#include "hip_bf16.h"
SMITH_BF16(hip_bfloat16)
