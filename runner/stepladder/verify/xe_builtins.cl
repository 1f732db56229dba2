// Built-ins of Intel's GPUs in OpenCL C: 2D block operations and matrix products of sub-groups of 16 work-items.
//
// A runtime for CPUs has sub-groups and lacks these. `opencl` adds a line for each built-in that a kernel imports, such
// as READ(intel_sub_group_2d_block_read_16b_8r16x1c, ushort, 8, 16, 1). Semantics are those of the extensions
// cl_intel_subgroup_2d_block_io and cl_intel_subgroup_matrix_multiply_accumulate.
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#pragma OPENCL EXTENSION cl_intel_subgroups : enable

// Not inlined: the runtime takes seconds to compile a kernel with hundreds of copies.
#define BUILT_IN __attribute__((overloadable, noinline))
#define SURFACE __global void *base, int width, int height, int pitch, int2 at
#define ADDRESS(T, y, x) ((__global T *)((__global char *)base + (long)(y) * pitch) + (x))
#define INSIDE(T, y, x) ((y) >= 0 && (y) < height && (x) >= 0 && (x) < width / (int)sizeof(T))

// A work-item holds, for each block and row, its `each` adjacent columns.
#define READ(NAME, T, ROWS, COLUMNS, BLOCKS)                                                                          \
  void BUILT_IN NAME(SURFACE, __private T *to) {                                                                      \
    const int each = COLUMNS / 16, lane = get_sub_group_local_id();                                                   \
    for (int block = 0; block < BLOCKS; ++block)                                                                      \
      for (int row = 0; row < ROWS; ++row)                                                                            \
        for (int part = 0; part < each; ++part) {                                                                     \
          const int y = at.y + row, x = at.x + block * COLUMNS + lane * each + part;                                  \
          to[(block * ROWS + row) * each + part] = INSIDE(T, y, x) ? *ADDRESS(T, y, x) : (T)0;                        \
        }                                                                                                             \
  }

// A work-item holds a column of each block: PACK rows in a number of 32 bits, the first in the lowest bits.
#define READ_TRANSFORM(NAME, T, PACK, ROWS, BLOCKS)                                                                   \
  void BUILT_IN NAME(SURFACE, __private uint *to) {                                                                   \
    const int lane = get_sub_group_local_id();                                                                        \
    for (int block = 0; block < BLOCKS; ++block)                                                                      \
      for (int group = 0; group < ROWS / PACK; ++group) {                                                             \
        uint word = 0;                                                                                                \
        for (int part = 0; part < PACK; ++part) {                                                                     \
          const int y = at.y + group * PACK + part, x = at.x + block * 16 + lane;                                     \
          const uint found = INSIDE(T, y, x) ? *ADDRESS(T, y, x) : (T)0;                                              \
          word |= found << (32 / PACK * part);                                                                        \
        }                                                                                                             \
        to[block * (ROWS / PACK) + group] = word;                                                                     \
      }                                                                                                               \
  }

// A work-item holds a row.
#define READ_TRANSPOSE(NAME, T, COLUMNS)                                                                              \
  void BUILT_IN NAME(SURFACE, __private T *to) {                                                                      \
    const int y = at.y + (int)get_sub_group_local_id();                                                               \
    for (int column = 0; column < COLUMNS; ++column) {                                                                \
      const int x = at.x + column;                                                                                    \
      to[column] = INSIDE(T, y, x) ? *ADDRESS(T, y, x) : (T)0;                                                        \
    }                                                                                                                 \
  }

#define WRITE(NAME, T, ROWS, COLUMNS)                                                                                 \
  void BUILT_IN NAME(SURFACE, __private T *from) {                                                                    \
    const int each = COLUMNS / 16, lane = get_sub_group_local_id();                                                   \
    for (int row = 0; row < ROWS; ++row)                                                                              \
      for (int part = 0; part < each; ++part) {                                                                       \
        const int y = at.y + row, x = at.x + lane * each + part;                                                      \
        if (INSIDE(T, y, x)) *ADDRESS(T, y, x) = from[row * each + part];                                             \
      }                                                                                                               \
  }

#define PREFETCH(NAME)                                                                                                \
  void BUILT_IN NAME(SURFACE) {}

// Products of 16-bit numbers: A with ROWS rows, a column of it a work-item; B as `int8`, two rows a number.
#define MATRIX_MAD(NAME, TO_FLOAT, ROWS)                                                                              \
  float##ROWS BUILT_IN NAME(short##ROWS a, int8 b, float##ROWS c) {                                                   \
    float##ROWS sum = c;                                                                                              \
    for (int pair = 0; pair < 8; ++pair) {                                                                            \
      const float low = TO_FLOAT((short)(b[pair] & 0xffff)), high = TO_FLOAT((short)(b[pair] >> 16));                 \
      for (int row = 0; row < ROWS; ++row) {                                                                          \
        sum[row] += TO_FLOAT(intel_sub_group_shuffle(a[row], 2 * pair)) * low;                                        \
        sum[row] += TO_FLOAT(intel_sub_group_shuffle(a[row], 2 * pair + 1)) * high;                                   \
      }                                                                                                               \
    }                                                                                                                 \
    return sum;                                                                                                       \
  }

float of_f16(short bits) { return (float)as_half(bits); }
float of_bf16(short bits) { return as_float((int)(ushort)bits << 16); }
