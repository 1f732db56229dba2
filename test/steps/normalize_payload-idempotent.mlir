// The normal form stays as it is, to the letter.
//
// RUN: %stepladder-opt %payloads/accumulate.mlir -o %t.before
// RUN: %stepladder-opt %payloads/accumulate.mlir --pipeline wmma --through normalize_payload -o %t.after
// RUN: diff %t.before %t.after
