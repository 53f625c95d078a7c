/* Offsets, in words, of what nn_vpu_*.S read and C fills in; and their frame on the stack.
 *
 * The functions in assembly share registers:
 *   r0      the group, an nn_vpu_group
 *   r1      the inputs: an nn_vpu_runs, or an nn_vpu_taps
 *   r2      where the next pixel's inputs lie
 *   r3      where its outputs go
 *   r4      pixels that are left
 *   r5      32, the bytes of a vector
 *   r6-r11  free between the functions
 * nn_vpu_outputs_xs3 makes outputs of a pixel's sums in the accumulators. It gets the frame's
 * FRAME_LOW in r6, the group's kind in r8 and its address and 32 in r9, and keeps r0 and r2 to r5.
 */
#ifndef NN_VPU_OFFSETS_H
#define NN_VPU_OFFSETS_H

/* nn_vpu_group */
#define VPU_FACTORS 0
#define VPU_BIAS 1
#define VPU_WEIGHTS 2
#define VPU_STEP 3
#define VPU_KIND 4
#define VPU_MASK 5
#define VPU_STORE 6
#define VPU_BOUNDS 7
#define VPU_SCALAR 8
#define VPU_PLACE 9
#define VPU_RECORD 10
#define VPU_ORDER 12
#define VPU_COMMON 13
#define VPU_DENSE 15
#define VPU_OWN 16
#define VPU_GROUP_VECTORS 7 /* bytes of a group, in vectors */

/* nn_vpu_record; the first two in bytes */
#define RECORD_AS 80
#define RECORD_SHIFTS 208
#define RECORD_JUMPS 2

/* nn_vpu_runs */
#define RUNS_X_STEP 0
#define RUNS_TO_STEP 1
#define RUNS_PAIRS 2
#define RUNS_ODD 3
#define RUNS_MORE 4
#define RUNS_AHEAD 5
#define RUNS_RING 6
#define RUNS_RING_END 7
#define RUNS_REST_FROM 8
#define RUNS_REST_TO 9
#define RUNS_REST_MASK 10
#define RUNS_REST 11

/* nn_vpu_taps, and a line of taps */
#define TAPS_X_STEP 0
#define TAPS_TO_STEP 1
#define TAPS_HEAD 2
#define TAPS_ROWS 3
#define TAPS_BEFORE 4
#define TAPS_COUNT 5
#define TAPS_AFTER 6
#define TAPS_TAIL 7
#define TAPS_ROW_STEP 8
#define TAPS_RING 9
#define TAPS_RING_END 10
#define TAPS_X 11
#define TAPS_PADDING 12 /* behind it the step from tap to tap */
#define TAPS_MOST_LINES 20
#define LINE_X 0
#define LINE_STEP 1
#define LINE_SKIP 2
#define LINE_FLAGS 3

/* nn_vpu_patch */
#define PATCH_HEAD 0
#define PATCH_ROWS 1
#define PATCH_BEFORE 2
#define PATCH_BYTES 3
#define PATCH_AFTER 4
#define PATCH_TAIL 5
#define PATCH_ROW_STEP 6
#define PATCH_RING 7
#define PATCH_RING_END 8
#define PATCH_VALUE 9
#define PATCH_PADDED 10
#define PATCH_WORDS 11
#define PATCH_TO 12
#define PATCH_X_STEP 13 /* behind it the step of outputs */

/* nn_vpu_pool_area */
#define AREA_X 0
#define AREA_ROWS 1
#define AREA_COLUMNS 2
#define AREA_STRIDE 3
#define AREA_ROW_STEP 4
#define AREA_RING 5
#define AREA_RING_END 6
#define AREA_OUT 7
#define AREA_GROUPS 8
#define AREA_BACK 9
#define AREA_START 10

/* In bytes: `pooling` of nn_max_pool_s8_vpu.c, nn_vpu_averages, `factors` of nn_mean_s8_vpu.c */
#define POOLING_BY_256 100
#define POOLING_ZERO 132
#define POOLING_START 164
#define AVERAGES_ONES 164
#define AVERAGES_TIMES 364
#define FACTORS_TIMES 320

/* `addition` of nn_add_s8_vpu.c, in bytes */
#define ADDITION_CLAMP 384

/* The frame: r4 to r10 are saved from word 1 on. */
#define FRAME 40
#define FRAME_UPPER 8 /* vectors */
#define FRAME_LOW 16
#define FRAME_NEAR 24
#define FRAME_GROUP 32
#define FRAME_INPUTS 33
#define FRAME_X 34 /* arguments */
#define FRAME_TO 35
#define FRAME_X_NOW 36 /* while C computes a pixel's outputs */
#define FRAME_TO_NOW 37
#define FRAME_PIXELS (FRAME + 1) /* arguments that the caller put there */
#define FRAME_MORE (FRAME + 2)   /* groups behind the first one; counts down */

#endif
