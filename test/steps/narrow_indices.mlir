// Index arithmetic whose range is known to be small is done in 32 bits; addresses keep 64.
//
// DEFINE: %{opt} = %stepladder-opt %t.mlir --pipeline wgmma --set persistent_blocks=6 --set raster_group=2 --through narrow_indices
// RUN: %stepladder payload matmul --m 1000 --n 1100 --k 512 --b-layout column -o %t.mlir
// RUN: %{opt} --set epilogue=registers -o %t
// RUN: FileCheck %s --input-file %t
// RUN: %{opt} --set epilogue=registers --without narrow_indices | FileCheck %s --check-prefix=WITHOUT

// CHECK: gpu.func @matmul_kernel
// CHECK-NOT: affine.apply
// CHECK: arith.remsi %{{.*}}, %{{.*}} : i32
// CHECK: arith.cmpi ult, %{{.*}}, %{{.*}} : i32
// CHECK-NOT: {{affine.apply|arith.(remui|divui|remsi|divsi|floordivsi) .* : index}}

// WITHOUT-NOT: arith.{{remui|divui|remsi|divsi}} %{{.*}}, %{{.*}} : i32
// WITHOUT: affine.apply
// WITHOUT: arith.cmpi ult, %{{.*}}, %{{.*}} : index
// WITHOUT-NOT: arith.{{remui|divui|remsi|divsi}} %{{.*}}, %{{.*}} : i32
