// A mixture of experts: the two best of four for each token, by topk and scatter.
#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d0)>
#map2 = affine_map<(d0, d1) -> (d0, 0)>
#map3 = affine_map<(d0, d1, d2) -> (d0, 0, d2)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map6 = affine_map<(d0) -> (d0)>
#map7 = affine_map<(d0, d1) -> (d1)>
#map8 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map9 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map10 = affine_map<(d0, d1, d2) -> (d1, 0)>
#map11 = affine_map<(d0, d1, d2) -> (d2)>
#map12 = affine_map<(d0, d1, d2) -> ()>
module {
  func.func @top_experts(%arg0: tensor<4x16x24xf32>, %arg1: tensor<4x24x16xf32>, %arg2: tensor<4x16xf32>, %arg3: tensor<6x16xf32>) -> tensor<6x16xf32> {
    %c4_i64 = arith.constant 4 : i64
    %c0_i64 = arith.constant 0 : i64
    %c4 = arith.constant 4 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %c2 = arith.constant 2 : index
    %true = arith.constant true
    %c-9223372036854775808_i64 = arith.constant -9223372036854775808 : i64
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<6x4xf32>
    %cst_3 = arith.constant dense<-1> : tensor<i64>
    %cst_4 = arith.constant dense<0> : tensor<i64>
    %0 = tensor.empty() : tensor<16x4xf32>
    %transposed = linalg.transpose ins(%arg2 : tensor<4x16xf32>) outs(%0 : tensor<16x4xf32>) permutation = [1, 0] 
    %1 = tensor.empty() : tensor<6x4xf32>
    %2 = linalg.fill ins(%cst : f32) outs(%1 : tensor<6x4xf32>) -> tensor<6x4xf32>
    %3 = linalg.matmul ins(%arg3, %transposed : tensor<6x16xf32>, tensor<16x4xf32>) outs(%2 : tensor<6x4xf32>) -> tensor<6x4xf32>
    %4 = tensor.empty() : tensor<6xi64>
    %5 = linalg.fill ins(%c0_i64 : i64) outs(%4 : tensor<6xi64>) -> tensor<6xi64>
    %6 = tensor.empty() : tensor<6xf32>
    %7 = linalg.fill ins(%cst_0 : f32) outs(%6 : tensor<6xf32>) -> tensor<6xf32>
    %8:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "reduction"]} ins(%3 : tensor<6x4xf32>) outs(%7, %5 : tensor<6xf32>, tensor<6xi64>) {
    ^bb0(%in: f32, %out: f32, %out_28: i64):
      %79 = linalg.index 1 : index
      %80 = arith.index_cast %79 : index to i64
      %81 = arith.maximumf %in, %out : f32
      %82 = arith.cmpf ogt, %in, %out : f32
      %83 = arith.select %82, %80, %out_28 : i64
      linalg.yield %81, %83 : f32, i64
    } -> (tensor<6xf32>, tensor<6xi64>)
    %expanded = tensor.expand_shape %8#0 [[0, 1]] output_shape [6, 1] : tensor<6xf32> into tensor<6x1xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%3, %expanded : tensor<6x4xf32>, tensor<6x1xf32>) outs(%1 : tensor<6x4xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %79 = arith.subf %in, %in_28 : f32
      linalg.yield %79 : f32
    } -> tensor<6x4xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<6x4xf32>) outs(%1 : tensor<6x4xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = math.exp %in : f32
      linalg.yield %79 : f32
    } -> tensor<6x4xf32>
    %11 = tensor.empty() : tensor<6x1xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<6x1xf32>) -> tensor<6x1xf32>
    %13 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%10 : tensor<6x4xf32>) outs(%12 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.addf %in, %out : f32
      linalg.yield %79 : f32
    } -> tensor<6x1xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%10, %13 : tensor<6x4xf32>, tensor<6x1xf32>) outs(%1 : tensor<6x4xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %79 = arith.divf %in, %in_28 : f32
      linalg.yield %79 : f32
    } -> tensor<6x4xf32>
    %expanded_5 = tensor.expand_shape %14 [[0], [1, 2]] output_shape [6, 4, 1] : tensor<6x4xf32> into tensor<6x4x1xf32>
    %expanded_6 = tensor.expand_shape %14 [[0], [1, 2]] output_shape [6, 1, 4] : tensor<6x4xf32> into tensor<6x1x4xf32>
    %15 = tensor.empty() : tensor<6x4x4xi1>
    %16 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded_5 : tensor<6x1x4xf32>, tensor<6x4x1xf32>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: f32, %in_28: f32, %out: i1):
      %79 = arith.cmpf ogt, %in, %in_28 : f32
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %17 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded_5 : tensor<6x1x4xf32>, tensor<6x4x1xf32>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: f32, %in_28: f32, %out: i1):
      %79 = arith.cmpf oeq, %in, %in_28 : f32
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %18 = tensor.empty() : tensor<6x4x1xi1>
    %19 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_5, %expanded_5 : tensor<6x4x1xf32>, tensor<6x4x1xf32>) outs(%18 : tensor<6x4x1xi1>) {
    ^bb0(%in: f32, %in_28: f32, %out: i1):
      %79 = arith.cmpf une, %in, %in_28 : f32
      linalg.yield %79 : i1
    } -> tensor<6x4x1xi1>
    %20 = tensor.empty() : tensor<6x1x4xi1>
    %21 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_6, %expanded_6 : tensor<6x1x4xf32>, tensor<6x1x4xf32>) outs(%20 : tensor<6x1x4xi1>) {
    ^bb0(%in: f32, %in_28: f32, %out: i1):
      %79 = arith.cmpf une, %in, %in_28 : f32
      linalg.yield %79 : i1
    } -> tensor<6x1x4xi1>
    %22 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<6x4x1xi1>) outs(%18 : tensor<6x4x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %79 = arith.xori %in, %true : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x1xi1>
    %23 = linalg.generic {indexing_maps = [#map3, #map4, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%21, %22 : tensor<6x1x4xi1>, tensor<6x4x1xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.andi %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %24 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %23 : tensor<6x4x4xi1>, tensor<6x4x4xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.ori %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %25 = linalg.generic {indexing_maps = [#map4, #map3, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19, %21 : tensor<6x4x1xi1>, tensor<6x1x4xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.andi %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %26 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%17, %25 : tensor<6x4x4xi1>, tensor<6x4x4xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.ori %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %27 = tensor.empty() : tensor<4xi64>
    %28 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel"]} outs(%27 : tensor<4xi64>) {
    ^bb0(%out: i64):
      %79 = linalg.index 0 : index
      %80 = arith.index_cast %79 : index to i64
      linalg.yield %80 : i64
    } -> tensor<4xi64>
    %expanded_7 = tensor.expand_shape %28 [[0, 1]] output_shape [4, 1] : tensor<4xi64> into tensor<4x1xi64>
    %29 = tensor.empty() : tensor<4x4xi1>
    %30 = linalg.generic {indexing_maps = [#map7, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%28, %expanded_7 : tensor<4xi64>, tensor<4x1xi64>) outs(%29 : tensor<4x4xi1>) {
    ^bb0(%in: i64, %in_28: i64, %out: i1):
      %79 = arith.cmpi slt, %in, %in_28 : i64
      linalg.yield %79 : i1
    } -> tensor<4x4xi1>
    %31 = linalg.generic {indexing_maps = [#map5, #map8, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %30 : tensor<6x4x4xi1>, tensor<4x4xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.andi %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %32 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %31 : tensor<6x4x4xi1>, tensor<6x4x4xi1>) outs(%15 : tensor<6x4x4xi1>) {
    ^bb0(%in: i1, %in_28: i1, %out: i1):
      %79 = arith.ori %in, %in_28 : i1
      linalg.yield %79 : i1
    } -> tensor<6x4x4xi1>
    %33 = tensor.empty() : tensor<6x4xi64>
    %34 = linalg.fill ins(%c0_i64 : i64) outs(%33 : tensor<6x4xi64>) -> tensor<6x4xi64>
    %35 = linalg.generic {indexing_maps = [#map5, #map9], iterator_types = ["parallel", "parallel", "reduction"]} ins(%32 : tensor<6x4x4xi1>) outs(%34 : tensor<6x4xi64>) {
    ^bb0(%in: i1, %out: i64):
      %79 = arith.extui %in : i1 to i64
      %80 = arith.addi %79, %out : i64
      linalg.yield %80 : i64
    } -> tensor<6x4xi64>
    %36 = tensor.empty() : tensor<2xi64>
    %37 = linalg.generic {indexing_maps = [#map6], iterator_types = ["parallel"]} outs(%36 : tensor<2xi64>) {
    ^bb0(%out: i64):
      %79 = linalg.index 0 : index
      %80 = arith.index_cast %79 : index to i64
      linalg.yield %80 : i64
    } -> tensor<2xi64>
    %expanded_8 = tensor.expand_shape %35 [[0], [1, 2]] output_shape [6, 1, 4] : tensor<6x4xi64> into tensor<6x1x4xi64>
    %expanded_9 = tensor.expand_shape %37 [[0, 1]] output_shape [2, 1] : tensor<2xi64> into tensor<2x1xi64>
    %38 = tensor.empty() : tensor<6x2x4xi1>
    %39 = linalg.generic {indexing_maps = [#map3, #map10, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_8, %expanded_9 : tensor<6x1x4xi64>, tensor<2x1xi64>) outs(%38 : tensor<6x2x4xi1>) {
    ^bb0(%in: i64, %in_28: i64, %out: i1):
      %79 = arith.cmpi eq, %in, %in_28 : i64
      linalg.yield %79 : i1
    } -> tensor<6x2x4xi1>
    %40 = tensor.empty() : tensor<6x2x4xi64>
    %41 = linalg.generic {indexing_maps = [#map5, #map11, #map12, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%39, %28, %cst_4 : tensor<6x2x4xi1>, tensor<4xi64>, tensor<i64>) outs(%40 : tensor<6x2x4xi64>) {
    ^bb0(%in: i1, %in_28: i64, %in_29: i64, %out: i64):
      %79 = arith.select %in, %in_28, %in_29 : i64
      linalg.yield %79 : i64
    } -> tensor<6x2x4xi64>
    %42 = tensor.empty() : tensor<6x2xi64>
    %43 = linalg.fill ins(%c0_i64 : i64) outs(%42 : tensor<6x2xi64>) -> tensor<6x2xi64>
    %44 = linalg.generic {indexing_maps = [#map5, #map9], iterator_types = ["parallel", "parallel", "reduction"]} ins(%41 : tensor<6x2x4xi64>) outs(%43 : tensor<6x2xi64>) {
    ^bb0(%in: i64, %out: i64):
      %79 = arith.addi %in, %out : i64
      linalg.yield %79 : i64
    } -> tensor<6x2xi64>
    %45 = tensor.empty() : tensor<6x2xf32>
    %46 = linalg.fill ins(%cst : f32) outs(%45 : tensor<6x2xf32>) -> tensor<6x2xf32>
    %47 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%44 : tensor<6x2xi64>) outs(%46 : tensor<6x2xf32>) {
    ^bb0(%in: i64, %out: f32):
      %79 = linalg.index 0 : index
      %80 = arith.index_cast %in : i64 to index
      %81 = arith.cmpi slt, %80, %c4 : index
      cf.assert %81, "index must be smaller than dim size"
      %82 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %82, "index must be larger or equal to 0"
      %extracted = tensor.extract %14[%79, %80] : tensor<6x4xf32>
      linalg.yield %extracted : f32
    } -> tensor<6x2xf32>
    %48 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "reduction"]} ins(%47 : tensor<6x2xf32>) outs(%12 : tensor<6x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.addf %in, %out : f32
      linalg.yield %79 : f32
    } -> tensor<6x1xf32>
    %49 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%47, %48 : tensor<6x2xf32>, tensor<6x1xf32>) outs(%45 : tensor<6x2xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %79 = arith.divf %in, %in_28 : f32
      linalg.yield %79 : f32
    } -> tensor<6x2xf32>
    %50 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%44 : tensor<6x2xi64>) outs(%42 : tensor<6x2xi64>) {
    ^bb0(%in: i64, %out: i64):
      %79 = arith.cmpi slt, %in, %c0_i64 : i64
      %80 = arith.addi %in, %c4_i64 : i64
      %81 = arith.select %79, %80, %in : i64
      %82 = arith.index_cast %81 : i64 to index
      %extracted = tensor.extract %28[%82] : tensor<4xi64>
      linalg.yield %extracted : i64
    } -> tensor<6x2xi64>
    %expanded_10 = tensor.expand_shape %50 [[0], [1, 2]] output_shape [6, 1, 2] : tensor<6x2xi64> into tensor<6x1x2xi64>
    %51 = tensor.empty() : tensor<6x4x2xi1>
    %52 = linalg.generic {indexing_maps = [#map3, #map10, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_10, %expanded_7 : tensor<6x1x2xi64>, tensor<4x1xi64>) outs(%51 : tensor<6x4x2xi1>) {
    ^bb0(%in: i64, %in_28: i64, %out: i1):
      %79 = arith.cmpi eq, %in, %in_28 : i64
      linalg.yield %79 : i1
    } -> tensor<6x4x2xi1>
    %53 = tensor.empty() : tensor<6x4x2xi64>
    %54 = linalg.generic {indexing_maps = [#map5, #map11, #map12, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%52, %37, %cst_3 : tensor<6x4x2xi1>, tensor<2xi64>, tensor<i64>) outs(%53 : tensor<6x4x2xi64>) {
    ^bb0(%in: i1, %in_28: i64, %in_29: i64, %out: i64):
      %79 = arith.select %in, %in_28, %in_29 : i64
      linalg.yield %79 : i64
    } -> tensor<6x4x2xi64>
    %55 = linalg.fill ins(%c-9223372036854775808_i64 : i64) outs(%33 : tensor<6x4xi64>) -> tensor<6x4xi64>
    %56:2 = linalg.generic {indexing_maps = [#map5, #map9, #map9], iterator_types = ["parallel", "parallel", "reduction"]} ins(%54 : tensor<6x4x2xi64>) outs(%55, %34 : tensor<6x4xi64>, tensor<6x4xi64>) {
    ^bb0(%in: i64, %out: i64, %out_28: i64):
      %79 = linalg.index 2 : index
      %80 = arith.index_cast %79 : index to i64
      %81 = arith.maxsi %in, %out : i64
      %82 = arith.cmpi sgt, %in, %out : i64
      %83 = arith.select %82, %80, %out_28 : i64
      linalg.yield %81, %83 : i64, i64
    } -> (tensor<6x4xi64>, tensor<6x4xi64>)
    %57 = tensor.empty() : tensor<6x4xi1>
    %58 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%56#0 : tensor<6x4xi64>) outs(%57 : tensor<6x4xi1>) {
    ^bb0(%in: i64, %out: i1):
      %79 = arith.cmpi sge, %in, %c0_i64 : i64
      linalg.yield %79 : i1
    } -> tensor<6x4xi1>
    %59 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%56#0 : tensor<6x4xi64>) outs(%33 : tensor<6x4xi64>) {
    ^bb0(%in: i64, %out: i64):
      %79 = arith.maxsi %in, %c0_i64 : i64
      linalg.yield %79 : i64
    } -> tensor<6x4xi64>
    %60 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%59 : tensor<6x4xi64>) outs(%2 : tensor<6x4xf32>) {
    ^bb0(%in: i64, %out: f32):
      %79 = linalg.index 0 : index
      %80 = arith.index_cast %in : i64 to index
      %81 = arith.cmpi slt, %80, %c2 : index
      cf.assert %81, "index must be smaller than dim size"
      %82 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %82, "index must be larger or equal to 0"
      %extracted = tensor.extract %49[%79, %80] : tensor<6x2xf32>
      linalg.yield %extracted : f32
    } -> tensor<6x4xf32>
    %61 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel"]} ins(%58, %60, %cst_2 : tensor<6x4xi1>, tensor<6x4xf32>, tensor<6x4xf32>) outs(%1 : tensor<6x4xf32>) {
    ^bb0(%in: i1, %in_28: f32, %in_29: f32, %out: f32):
      %79 = arith.select %in, %in_28, %in_29 : f32
      linalg.yield %79 : f32
    } -> tensor<6x4xf32>
    %expanded_11 = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [4, 16, 24, 1] : tensor<4x16x24xf32> into tensor<4x16x24x1xf32>
    %expanded_12 = tensor.expand_shape %arg3 [[0, 1], [2]] output_shape [1, 6, 16] : tensor<6x16xf32> into tensor<1x6x16xf32>
    %62 = tensor.empty() : tensor<16x4x24x1xf32>
    %transposed_13 = linalg.transpose ins(%expanded_11 : tensor<4x16x24x1xf32>) outs(%62 : tensor<16x4x24x1xf32>) permutation = [1, 0, 2, 3] 
    %collapsed = tensor.collapse_shape %transposed_13 [[0], [1, 2, 3]] : tensor<16x4x24x1xf32> into tensor<16x96xf32>
    %expanded_14 = tensor.expand_shape %collapsed [[0, 1], [2]] output_shape [1, 16, 96] : tensor<16x96xf32> into tensor<1x16x96xf32>
    %63 = tensor.empty() : tensor<1x6x96xf32>
    %64 = linalg.fill ins(%cst : f32) outs(%63 : tensor<1x6x96xf32>) -> tensor<1x6x96xf32>
    %65 = linalg.batch_matmul ins(%expanded_12, %expanded_14 : tensor<1x6x16xf32>, tensor<1x16x96xf32>) outs(%64 : tensor<1x6x96xf32>) -> tensor<1x6x96xf32>
    %collapsed_15 = tensor.collapse_shape %65 [[0, 1], [2]] : tensor<1x6x96xf32> into tensor<6x96xf32>
    %expanded_16 = tensor.expand_shape %collapsed_15 [[0], [1, 2, 3]] output_shape [6, 1, 4, 24] : tensor<6x96xf32> into tensor<6x1x4x24xf32>
    %66 = tensor.empty() : tensor<6x4x24x1xf32>
    %transposed_17 = linalg.transpose ins(%expanded_16 : tensor<6x1x4x24xf32>) outs(%66 : tensor<6x4x24x1xf32>) permutation = [0, 2, 3, 1] 
    %collapsed_18 = tensor.collapse_shape %transposed_17 [[0], [1], [2, 3]] : tensor<6x4x24x1xf32> into tensor<6x4x24xf32>
    %67 = tensor.empty() : tensor<6x4x24xf32>
    %68 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_18 : tensor<6x4x24xf32>) outs(%67 : tensor<6x4x24xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.negf %in : f32
      %80 = math.exp %79 : f32
      %81 = arith.addf %80, %cst_1 : f32
      %82 = arith.divf %cst_1, %81 : f32
      linalg.yield %82 : f32
    } -> tensor<6x4x24xf32>
    %69 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_18, %68 : tensor<6x4x24xf32>, tensor<6x4x24xf32>) outs(%67 : tensor<6x4x24xf32>) {
    ^bb0(%in: f32, %in_28: f32, %out: f32):
      %79 = arith.mulf %in, %in_28 : f32
      linalg.yield %79 : f32
    } -> tensor<6x4x24xf32>
    %expanded_19 = tensor.expand_shape %69 [[0], [1], [2, 3]] output_shape [6, 4, 24, 1] : tensor<6x4x24xf32> into tensor<6x4x24x1xf32>
    %70 = tensor.empty() : tensor<4x6x24x1xf32>
    %transposed_20 = linalg.transpose ins(%expanded_19 : tensor<6x4x24x1xf32>) outs(%70 : tensor<4x6x24x1xf32>) permutation = [1, 0, 2, 3] 
    %collapsed_21 = tensor.collapse_shape %transposed_20 [[0], [1], [2, 3]] : tensor<4x6x24x1xf32> into tensor<4x6x24xf32>
    %71 = tensor.empty() : tensor<4x6x16xf32>
    %72 = linalg.fill ins(%cst : f32) outs(%71 : tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %73 = linalg.batch_matmul ins(%collapsed_21, %arg1 : tensor<4x6x24xf32>, tensor<4x24x16xf32>) outs(%72 : tensor<4x6x16xf32>) -> tensor<4x6x16xf32>
    %expanded_22 = tensor.expand_shape %73 [[0], [1], [2, 3]] output_shape [4, 6, 1, 16] : tensor<4x6x16xf32> into tensor<4x6x1x16xf32>
    %74 = tensor.empty() : tensor<6x4x16x1xf32>
    %transposed_23 = linalg.transpose ins(%expanded_22 : tensor<4x6x1x16xf32>) outs(%74 : tensor<6x4x16x1xf32>) permutation = [1, 0, 3, 2] 
    %collapsed_24 = tensor.collapse_shape %transposed_23 [[0], [1], [2, 3]] : tensor<6x4x16x1xf32> into tensor<6x4x16xf32>
    %75 = tensor.empty() : tensor<6x16x4xf32>
    %transposed_25 = linalg.transpose ins(%collapsed_24 : tensor<6x4x16xf32>) outs(%75 : tensor<6x16x4xf32>) permutation = [0, 2, 1] 
    %expanded_26 = tensor.expand_shape %61 [[0], [1, 2]] output_shape [6, 4, 1] : tensor<6x4xf32> into tensor<6x4x1xf32>
    %76 = tensor.empty() : tensor<6x16x1xf32>
    %77 = linalg.fill ins(%cst : f32) outs(%76 : tensor<6x16x1xf32>) -> tensor<6x16x1xf32>
    %78 = linalg.batch_matmul ins(%transposed_25, %expanded_26 : tensor<6x16x4xf32>, tensor<6x4x1xf32>) outs(%77 : tensor<6x16x1xf32>) -> tensor<6x16x1xf32>
    %collapsed_27 = tensor.collapse_shape %78 [[0], [1, 2]] : tensor<6x16x1xf32> into tensor<6x16xf32>
    return %collapsed_27 : tensor<6x16xf32>
  }
}
