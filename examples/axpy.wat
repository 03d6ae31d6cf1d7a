;; PS functions in WebAssembly text: axpy, into[0] = a x + y, for f32 and f64 matrices. x is the first row to read, y the
;; second, a the one number of the argument. As the built-in axpy wat_axpy computes in doubles and rounds once, so that both give the
;; same bytes. docs/wasm-functions.md says what each export is for.
(module
  (memory (export "memory") 1)

  (func (export "reads:wat_axpy") (result i32) (i32.const 2))
  (func (export "writes:wat_axpy") (result i32) (i32.const 1))
  (func (export "arguments:wat_axpy") (result i32) (i32.const 1))
  (func (export "overwrites:wat_axpy") (result i32) (i32.const 1))
  (func (export "tries_first:wat_axpy") (result i32) (i32.const 0))

  (func (export "change:wat_axpy:f32")
    (param $from i32) (param $from_count i32) (param $into i32) (param $into_count i32)
    (param $length i32) (param $start i64) (param $argument i32) (param $argument_count i32)
    (result i32)
    (local $y i32) (local $end i32) (local $a f64) (local $as v128)
    (local.set $a (f64.load (local.get $argument)))
    (local.set $as (f64x2.splat (local.get $a)))
    ;; Rows lie one behind another.
    (local.set $y (i32.add (local.get $from) (i32.shl (local.get $length) (i32.const 2))))

    ;; Eight columns at a time, in pairs.
    (local.set $end
      (i32.add (local.get $into) (i32.shl (i32.and (local.get $length) (i32.const -8)) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $into) (local.get $end)))
        (v128.store64_lane offset=0 0 (local.get $into)
          (f32x4.demote_f64x2_zero
            (f64x2.add
              (f64x2.mul (local.get $as) (f64x2.promote_low_f32x4 (v128.load64_zero offset=0 (local.get $from))))
              (f64x2.promote_low_f32x4 (v128.load64_zero offset=0 (local.get $y))))))
        (v128.store64_lane offset=8 0 (local.get $into)
          (f32x4.demote_f64x2_zero
            (f64x2.add
              (f64x2.mul (local.get $as) (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $from))))
              (f64x2.promote_low_f32x4 (v128.load64_zero offset=8 (local.get $y))))))
        (v128.store64_lane offset=16 0 (local.get $into)
          (f32x4.demote_f64x2_zero
            (f64x2.add
              (f64x2.mul (local.get $as) (f64x2.promote_low_f32x4 (v128.load64_zero offset=16 (local.get $from))))
              (f64x2.promote_low_f32x4 (v128.load64_zero offset=16 (local.get $y))))))
        (v128.store64_lane offset=24 0 (local.get $into)
          (f32x4.demote_f64x2_zero
            (f64x2.add
              (f64x2.mul (local.get $as) (f64x2.promote_low_f32x4 (v128.load64_zero offset=24 (local.get $from))))
              (f64x2.promote_low_f32x4 (v128.load64_zero offset=24 (local.get $y))))))
        (local.set $from (i32.add (local.get $from) (i32.const 32)))
        (local.set $y (i32.add (local.get $y) (i32.const 32)))
        (local.set $into (i32.add (local.get $into) (i32.const 32)))
        (br $next)))

    ;; The rest one by one.
    (local.set $end
      (i32.add (local.get $into) (i32.shl (i32.and (local.get $length) (i32.const 7)) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $into) (local.get $end)))
        (f32.store (local.get $into)
          (f32.demote_f64
            (f64.add
              (f64.mul (local.get $a) (f64.promote_f32 (f32.load (local.get $from))))
              (f64.promote_f32 (f32.load (local.get $y))))))
        (local.set $from (i32.add (local.get $from) (i32.const 4)))
        (local.set $y (i32.add (local.get $y) (i32.const 4)))
        (local.set $into (i32.add (local.get $into) (i32.const 4)))
        (br $next)))
    (i32.const 0))

  (func (export "change:wat_axpy:f64")
    (param $from i32) (param $from_count i32) (param $into i32) (param $into_count i32)
    (param $length i32) (param $start i64) (param $argument i32) (param $argument_count i32)
    (result i32)
    (local $y i32) (local $end i32) (local $a f64)
    (local.set $a (f64.load (local.get $argument)))
    (local.set $y (i32.add (local.get $from) (i32.shl (local.get $length) (i32.const 3))))
    (local.set $end (i32.add (local.get $into) (i32.shl (local.get $length) (i32.const 3))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $into) (local.get $end)))
        (f64.store (local.get $into)
          (f64.add (f64.mul (local.get $a) (f64.load (local.get $from))) (f64.load (local.get $y))))
        (local.set $from (i32.add (local.get $from) (i32.const 8)))
        (local.set $y (i32.add (local.get $y) (i32.const 8)))
        (local.set $into (i32.add (local.get $into) (i32.const 8)))
        (br $next)))
    (i32.const 0))

  ;; The same in singles, rounded twice: fewer instructions, and other last digits than the built-in.
  (func (export "reads:wat_axpy_singles") (result i32) (i32.const 2))
  (func (export "writes:wat_axpy_singles") (result i32) (i32.const 1))
  (func (export "arguments:wat_axpy_singles") (result i32) (i32.const 1))
  (func (export "overwrites:wat_axpy_singles") (result i32) (i32.const 1))
  (func (export "tries_first:wat_axpy_singles") (result i32) (i32.const 0))
  (func (export "change:wat_axpy_singles:f32")
    (param $from i32) (param $from_count i32) (param $into i32) (param $into_count i32)
    (param $length i32) (param $start i64) (param $argument i32) (param $argument_count i32)
    (result i32)
    (local $y i32) (local $end i32) (local $a f64) (local $as v128)
    (local.set $a (f64.load (local.get $argument)))
    (local.set $as (f32x4.splat (f32.demote_f64 (local.get $a))))
    ;; Rows lie one behind another.
    (local.set $y (i32.add (local.get $from) (i32.shl (local.get $length) (i32.const 2))))

    (local.set $end
      (i32.add (local.get $into) (i32.shl (i32.and (local.get $length) (i32.const -8)) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $into) (local.get $end)))
        (v128.store offset=0 (local.get $into)
          (f32x4.add (f32x4.mul (local.get $as) (v128.load offset=0 (local.get $from))) (v128.load offset=0 (local.get $y))))
        (v128.store offset=16 (local.get $into)
          (f32x4.add (f32x4.mul (local.get $as) (v128.load offset=16 (local.get $from))) (v128.load offset=16 (local.get $y))))
        (local.set $from (i32.add (local.get $from) (i32.const 32)))
        (local.set $y (i32.add (local.get $y) (i32.const 32)))
        (local.set $into (i32.add (local.get $into) (i32.const 32)))
        (br $next)))

    ;; The rest one by one.
    (local.set $end
      (i32.add (local.get $into) (i32.shl (i32.and (local.get $length) (i32.const 7)) (i32.const 2))))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $into) (local.get $end)))
        (f32.store (local.get $into)
          (f32.add
            (f32.mul (f32x4.extract_lane 0 (local.get $as)) (f32.load (local.get $from)))
            (f32.load (local.get $y))))
        (local.set $from (i32.add (local.get $from) (i32.const 4)))
        (local.set $y (i32.add (local.get $y) (i32.const 4)))
        (local.set $into (i32.add (local.get $into) (i32.const 4)))
        (br $next)))
    (i32.const 0)))
