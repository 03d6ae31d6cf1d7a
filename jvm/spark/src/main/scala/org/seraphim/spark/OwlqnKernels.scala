package org.seraphim.spark

import java.nio.ByteBuffer
import java.security.MessageDigest

import org.seraphim.client.FunctionCall

/**
 * The closures of breeze's OWLQN as programs of PS functions, so that it runs unchanged and no values come to the
 * driver. A closure is recognized by its class and by its results on sample values; what is not recognized runs in the
 * driver ([[VectorChunks]]).
 */
private[spark] object OwlqnKernels {
  private val Owner = "breeze.optimize.OWLQN"
  /** Values of all signs, and zeros. */
  private val Samples = Array(-3.5, -1.0, -1e-9, -0.0, 0.0, 1e-7, 1.0, 2.25)
  /** A number > 0 that adds nothing to a sum when it is multiplied by a penalty. */
  private val Tiny = Double.MinPositiveValue

  /** A function of two vectors, its meaning for numbers, and its program; the last argument is a scratch row. */
  private final class Kernel(
      val name: String,
      val meaning: (Double, Double) => Double,
      val program: (Row, Row, Row, Row) => Seq[FunctionCall])

  private val kernels = Seq(
    new Kernel(
      "descent",
      (d, g) => if (d * g < 0) d else 0.0,
      (d, g, out, _) =>
        Seq(
          call("mul", Seq(d, g), out),
          call("sign", Seq(out), out),
          call("negate", Seq(out), out),
          clip(out),
          call("mul", Seq(d, out), out))),
    new Kernel(
      "orthant",
      (x, g) => if (x != 0) math.signum(x) else math.signum(-g),
      (x, g, out, scratch) =>
        Seq(
          call("sign", Seq(g), scratch),
          call("sign", Seq(x), out),
          // Where x is 0, the sign of -g; else 2 sign(x) decides.
          call("combine", Seq(out, scratch), out).`with`(new FunctionCall.Argument().numbers(2.0, -1.0)),
          call("sign", Seq(out), out))),
    new Kernel(
      "projection",
      (v, o) => if (math.signum(v) == math.signum(o)) v else v * 0.0,
      (v, o, out, scratch) =>
        Seq(
          call("sign", Seq(v), scratch),
          call("sign", Seq(o), out),
          call("mul", Seq(scratch, out), out),
          clip(out),
          call("mul", Seq(v, out), out)))
  )

  private def call(name: String, reads: Seq[Row], into: Row): FunctionCall =
    FunctionCall.of(name, reads.map(_.number).toArray, Array(into.number))

  private def clip(row: Row): FunctionCall =
    call("clip", Seq(row), row).`with`(new FunctionCall.Argument().number(0.0).number(1.0))

  private def isOfOwlqn(closure: AnyRef): Boolean = closure.getClass.getName.startsWith(Owner)

  /** The result of a closure of two values, if it is recognized. */
  def zip(a: ServerVector, b: ServerVector, closure: (Double, Double) => Double): Option[ServerVector] =
    if (!isOfOwlqn(closure)) None
    else {
      val found = kernels.find { kernel =>
        Samples.forall(x => Samples.forall(y => kernel.meaning(x, y) == closure(x, y)))
      }
      found.map { kernel =>
        val (left, right) = (a.row(), b.row())
        if (kernel.name == "projection" && isOrthantOf(a.pool, right, left)) a.copy()
        else a.pool.memoized(Key(kernel.name, left.tag, right.tag, 0)) {
          a.pool.runProgram((out, scratch) => kernel.program(left, right, out, scratch))
        }
      }
    }

  private final case class Key(name: String, left: Long, right: Long, scales: Long)

  /** Whether a row is the orthant of `x`. The projection of x to it is x. */
  private def isOrthantOf(pool: VectorPool, row: Row, x: Row): Boolean = pool.origin(row).exists {
    case Key("orthant", left, _, _) => left == x.tag
    case _ => false
  }

  /**
   * The pseudo-gradient of x and the gradient g, if the closure is the one that computes it. The closure adds the
   * penalty of x to the objective as a side effect: it is called once with a number that has the same effect as all
   * values together.
   */
  def pseudoGradient(x: ServerVector, g: ServerVector, closure: (Int, Double, Double) => Double): Option[ServerVector] =
    if (!isOfOwlqn(closure) || x.dimension > Int.MaxValue) None
    else {
      val penalties = new Penalties(closure, x.dimension.toInt)
      if (!penalties.isPseudoGradient) None
      else if (penalties.isNone) Some(g.copy())
      else Some(pseudoGradientOf(x, g, closure, penalties))
    }

  private def pseudoGradientOf(
      x: ServerVector,
      g: ServerVector,
      closure: (Int, Double, Double) => Double,
      penalties: Penalties): ServerVector = {
    val scales = penalties.vector(x.pool)
    val magnitude = this.magnitude(x)
    val result = slope(x, g, scales)
    // The result has its row before the wait for this sum, so that its products come with it.
    val penalty = scales.dot(magnitude)
    val index = penalties.first
    closure(index, penalty / closure(index, Tiny, 0.0), 0.0)
    result
  }

  /** `|x|`, so that its inner product with the penalties is the penalty of x. */
  def magnitude(x: ServerVector): ServerVector = {
    val point = x.row()
    x.pool.memoized(Key("abs", point.tag, 0, 0))(x.pool.run(FunctionBuilder("abs", Seq(point))))
  }

  /** The pseudo-gradient of x and the gradient g, where each column has the penalty of `scales`. */
  def slope(x: ServerVector, g: ServerVector, scales: ServerVector): ServerVector = {
    val (point, gradient, scale) = (x.row(), g.row(), scales.row())
    x.pool.memoized(Key("pseudo-gradient", point.tag, gradient.tag, scale.tag)) {
      // l1, l2, the first column without penalty, then a and b of docs/ps-functions.md: -1 times the pseudo-gradient,
      // because the function clears columns at 0 where its result is an ascent.
      val argument = new FunctionCall.Argument().number(1.0).number(0.0).whole(Long.MaxValue).number(-1.0).numbers()
      x.pool.runProgram((out, _) =>
        Seq(
          call("quasi_newton_direction", Seq(point, gradient, scale), out).withVersion(2).`with`(argument),
          call("negate", Seq(out), out)))
    }
  }

  /** The penalties of the columns, as a closure of OWLQN has them. */
  private final class Penalties(closure: (Int, Double, Double) => Double, dimension: Int) {
    /** For x > 0 and g = 0 the pseudo-gradient is the penalty. */
    private def at(i: Int): Double = closure(i, Tiny, 0.0)

    /** The first column with a penalty; -1 if there is none. */
    val first: Int = Iterator.range(0, dimension).find(i => at(i) != 0.0).getOrElse(-1)

    private val isConstant: Boolean = first == 0 && Iterator.range(0, dimension).forall(i => at(i) == at(0))

    def isNone: Boolean = first < 0

    def vector(pool: VectorPool): ServerVector =
      if (isConstant) pool.constant(("penalty", at(0)))(pool.fill(at(0)))
      else {
        val values = Array.tabulate(dimension)(at)
        pool.constant(("penalties", digest(values)))(pool.create(values))
      }

    /** What differs for different penalties, and is short. */
    private def digest(values: Array[Double]): Seq[Byte] = {
      val bytes = ByteBuffer.allocate(values.length * java.lang.Double.BYTES)
      bytes.asDoubleBuffer.put(values)
      MessageDigest.getInstance("SHA-256").digest(bytes.array).toSeq
    }

    /** Whether the results on sample values are those of a pseudo-gradient. */
    def isPseudoGradient: Boolean = isNone || {
      val l1 = at(first)
      l1 > 0 && (for (x <- Seq(-Tiny, 0.0, Tiny); g <- Samples ++ Samples.map(_ * l1)) yield {
        val expected =
          if (x > 0) g + l1 else if (x < 0) g - l1 else if (g - l1 > 0) g - l1 else if (g + l1 < 0) g + l1 else 0.0
        closure(first, x, g) == expected
      }).forall(identity)
    }
  }
}
