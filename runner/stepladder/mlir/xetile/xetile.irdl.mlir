// The dialect `xetile` of the XeTile RFC: programs of tiles at work-group and at subgroup level.
//
// IRDL types and attributes have positional parameters, so that the named ones of the RFC are in a dictionary:
//
//   #map  = #xetile.wg_map<{sg_layout = [8, 4], sg_data = [32, 32]}>
//   #attr = #xetile.tile_attr<{wg = #map, order = [1, 0]}>
//   !xetile.tile<vector<256x32xf16>, #attr>              a block of a matrix, distributed to 32 subgroups
//   !xetile.tile<vector<8x16xf16>, unit>                 a block of a matrix at subgroup level, row-major
//   !xetile.tile<vector<8x64xf16>, #xetile.scatter>      elements that have an offset each
//
// The operations require what IRDL can say: kinds of operands, results and attributes, and that a tile and its vector
// are of one type. Optional attributes (`padding`, `wg_map`, `wg_map_a`, `wg_map_b`, `wg_map_source`,
// `reduction_size`, `broadcast_size`) cannot be declared. Shapes, orders, maps and element types are verified in Python
// (verify.py), which also has the messages.
irdl.dialect @xetile {
  irdl.attribute @wg_map {
    %map = irdl.base "#builtin.dictionary"
    irdl.parameters(map: %map)
  }
  irdl.attribute @tile_attr {
    %fields = irdl.base "#builtin.dictionary"
    irdl.parameters(fields: %fields)
  }
  irdl.attribute @scatter {}
  irdl.type @tile {
    %block = irdl.base "!builtin.vector"
    %tile_attr = irdl.base @xetile::@tile_attr
    %scatter = irdl.base @xetile::@scatter
    %none = irdl.is unit
    %kind = irdl.any_of(%tile_attr, %scatter, %none)
    irdl.parameters(block: %block, kind: %kind)
  }

  // Tiles and memory.
  irdl.operation @init_tile {
    %memref = irdl.base "!builtin.memref"
    %address = irdl.is i64
    %source = irdl.any_of(%memref, %address)
    %index = irdl.is index
    %vector = irdl.base "!builtin.vector"
    %offset = irdl.any_of(%index, %vector)
    %tile = irdl.base @xetile::@tile
    irdl.operands(source: %source, offsets: variadic %offset, shape: variadic %index, strides: variadic %index)
    irdl.results(tile: %tile)
  }
  irdl.operation @load_tile {
    %block = irdl.base "!builtin.vector"
    %kind = irdl.any
    %tile = irdl.parametric @xetile::@tile<%block, %kind>
    irdl.operands(tile: %tile)
    irdl.results(value: %block)
  }
  irdl.operation @store_tile {
    %block = irdl.base "!builtin.vector"
    %kind = irdl.any
    %tile = irdl.parametric @xetile::@tile<%block, %kind>
    irdl.operands(value: %block, tile: %tile)
  }
  irdl.operation @prefetch_tile {
    %tile = irdl.base @xetile::@tile
    %locality = irdl.base "#builtin.integer"
    irdl.operands(tile: %tile)
    irdl.attributes {"locality" = %locality}
  }
  irdl.operation @update_tile_offset {
    %tile = irdl.base @xetile::@tile
    %index = irdl.is index
    irdl.operands(tile: %tile, offset_x: %index, offset_y: %index)
    irdl.results(updated: %tile)
  }
  irdl.operation @atomic_rmw {
    %block = irdl.base "!builtin.vector"
    %any = irdl.any
    %tile = irdl.parametric @xetile::@tile<%block, %any>
    %number = irdl.base "#builtin.integer"
    %name = irdl.base "#builtin.string"
    %kind = irdl.any_of(%number, %name)
    irdl.operands(value: %block, tile: %tile)
    irdl.results(before: %block)
    irdl.attributes {"kind" = %kind}
  }
  irdl.operation @load_gather {
    %block = irdl.base "!builtin.vector"
    %scatter = irdl.base @xetile::@scatter
    %tile = irdl.parametric @xetile::@tile<%block, %scatter>
    %mask = irdl.base "!builtin.vector"
    irdl.operands(tile: %tile, mask: %mask)
    irdl.results(value: %block)
  }
  irdl.operation @store_scatter {
    %block = irdl.base "!builtin.vector"
    %scatter = irdl.base @xetile::@scatter
    %tile = irdl.parametric @xetile::@tile<%block, %scatter>
    %mask = irdl.base "!builtin.vector"
    irdl.operands(value: %block, mask: %mask, tile: %tile)
  }

  // Vectors.
  irdl.operation @tile_mma {
    %a = irdl.base "!builtin.vector"
    %b = irdl.base "!builtin.vector"
    %c = irdl.base "!builtin.vector"
    irdl.operands(a: %a, b: %b, c: optional %c)
    irdl.results(d: %c)
  }
  irdl.operation @transpose {
    %source = irdl.base "!builtin.vector"
    %result = irdl.base "!builtin.vector"
    %permutation = irdl.base "#builtin.array"
    irdl.operands(source: %source)
    irdl.results(result: %result)
    irdl.attributes {"permutation" = %permutation}
  }
  irdl.operation @reduction {
    %source = irdl.base "!builtin.vector"
    %result = irdl.base "!builtin.vector"
    %kind = irdl.any
    %dims = irdl.base "#builtin.array"
    irdl.operands(source: %source)
    irdl.results(result: %result)
    irdl.attributes {"kind" = %kind, "dims" = %dims}
  }
  irdl.operation @broadcast {
    %source = irdl.base "!builtin.vector"
    %result = irdl.base "!builtin.vector"
    %dims = irdl.base "#builtin.array"
    irdl.operands(source: %source)
    irdl.results(result: %result)
    irdl.attributes {"dims" = %dims}
  }
  irdl.operation @convert_layout {
    %block = irdl.base "!builtin.vector"
    %map = irdl.base @xetile::@wg_map
    irdl.operands(source: %block)
    irdl.results(result: %block)
    irdl.attributes {"wg_map" = %map}
  }
}
