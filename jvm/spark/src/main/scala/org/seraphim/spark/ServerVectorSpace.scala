package org.seraphim.spark

import breeze.generic.UFunc
import breeze.linalg.operators._
import breeze.linalg.support._
import breeze.linalg.{norm, scaleAdd}
import breeze.math.MutableEnumeratedCoordinateField

/**
 * What the optimizers of breeze need to run on [[ServerVector]]s. With
 * `import org.seraphim.spark.ServerVectorSpace._`, `new LBFGS[ServerVector](...)` and
 * `new OWLQN[Int, ServerVector](...)` compile and run as they are.
 *
 * Sums and multiples are only noted. Operations with closures (`zipMapValues`, `mapValues`) bring the values to the
 * driver in chunks, except those of OWLQN, which run on the servers.
 */
object ServerVectorSpace extends ServerVectorOperators {

  implicit val space: MutableEnumeratedCoordinateField[ServerVector, Int, Double] =
    MutableEnumeratedCoordinateField.make[ServerVector, Int, Double]
}

/** The operators, one for each type class. */
trait ServerVectorOperators {
  private type V = ServerVector

  private def binary[Tag](f: (V, V) => V): UFunc.UImpl2[Tag, V, V, V] = new UFunc.UImpl2[Tag, V, V, V] {
    def apply(a: V, b: V): V = f(a, b)
  }

  private def scalar[Tag](f: (V, Double) => V): UFunc.UImpl2[Tag, V, Double, V] =
    new UFunc.UImpl2[Tag, V, Double, V] {
      def apply(a: V, b: Double): V = f(a, b)
    }

  private def inPlace[Tag, B](f: (V, B) => Unit): UFunc.InPlaceImpl2[Tag, V, B] =
    new UFunc.InPlaceImpl2[Tag, V, B] {
      def apply(a: V, b: B): Unit = f(a, b)
    }

  implicit val serverVectorAdd: OpAdd.Impl2[V, V, V] = binary(_.plus(1.0, _))
  implicit val serverVectorSub: OpSub.Impl2[V, V, V] = binary(_.minus(_))
  implicit val serverVectorMulVector: OpMulScalar.Impl2[V, V, V] = binary(_.zip("mul", _))
  implicit val serverVectorDivVector: OpDiv.Impl2[V, V, V] = binary(_.zip("div", _))
  implicit val serverVectorMul: OpMulScalar.Impl2[V, Double, V] = scalar(_.times(_))
  implicit val serverVectorDiv: OpDiv.Impl2[V, Double, V] = scalar((a, b) => a.times(1.0 / b))
  implicit val serverVectorDot: OpMulInner.Impl2[V, V, Double] = new OpMulInner.Impl2[V, V, Double] {
    def apply(a: V, b: V): Double = a.dot(b)
  }
  implicit val serverVectorNeg: OpNeg.Impl[V, V] = new OpNeg.Impl[V, V] {
    def apply(a: V): V = a.times(-1.0)
  }

  implicit val serverVectorAddInto: OpAdd.InPlaceImpl2[V, V] = inPlace((a: V, b: V) => a.add(b))
  implicit val serverVectorSubInto: OpSub.InPlaceImpl2[V, V] = inPlace((a: V, b: V) => a.axpy(-1.0, b))
  implicit val serverVectorMulVectorInto: OpMulScalar.InPlaceImpl2[V, V] =
    inPlace((a: V, b: V) => a.assign(a.zip("mul", b)))
  implicit val serverVectorDivVectorInto: OpDiv.InPlaceImpl2[V, V] =
    inPlace((a: V, b: V) => a.assign(a.zip("div", b)))
  implicit val serverVectorMulInto: OpMulScalar.InPlaceImpl2[V, Double] = inPlace((a: V, b: Double) => a.scale(b))
  implicit val serverVectorDivInto: OpDiv.InPlaceImpl2[V, Double] = inPlace((a: V, b: Double) => a.scale(1.0 / b))
  implicit val serverVectorSetInto: OpSet.InPlaceImpl2[V, V] = inPlace((a: V, b: V) => a.assign(b))
  implicit val serverVectorScaleAdd: scaleAdd.InPlaceImpl3[V, Double, V] =
    new scaleAdd.InPlaceImpl3[V, Double, V] {
      def apply(y: V, a: Double, x: V): Unit = y.axpy(a, x)
    }

  implicit val serverVectorNorm: norm.Impl[V, Double] = new norm.Impl[V, Double] {
    def apply(a: V): Double = a.norm()
  }
  implicit val serverVectorPNorm: norm.Impl2[V, Double, Double] = new norm.Impl2[V, Double, Double] {
    def apply(a: V, p: Double): Double = {
      if (p != 2.0) throw new UnsupportedOperationException(s"the $p-norm of a ServerVector; only the 2-norm is there")
      a.norm()
    }
  }

  implicit val serverVectorCopy: CanCopy[V] = new CanCopy[V] {
    def apply(a: V): V = a.copy()
  }
  implicit val serverVectorZeros: CanCreateZerosLike[V, V] = new CanCreateZerosLike[V, V] {
    def apply(a: V): V = a.pool.zeros()
  }

  implicit val serverVectorZipMap: CanZipMapValues[V, Double, Double, V] =
    new CanZipMapValues[V, Double, Double, V] {
      def map(a: V, b: V, f: (Double, Double) => Double): V =
        OwlqnKernels.zip(a, b, f).getOrElse(VectorChunks.zip(a, b)((_, x, y) => f(x, y)))
    }
  implicit val serverVectorZipMapKeys: CanZipMapKeyValues[V, Int, Double, Double, V] =
    new CanZipMapKeyValues[V, Int, Double, Double, V] {
      def map(a: V, b: V, f: (Int, Double, Double) => Double): V =
        OwlqnKernels.pseudoGradient(a, b, f).getOrElse(VectorChunks.zip(a, b)(f))
      def mapActive(a: V, b: V, f: (Int, Double, Double) => Double): V = map(a, b, f)
    }
  implicit val serverVectorMapValues: CanMapValues[V, Double, Double, V] =
    new CanMapValues[V, Double, Double, V] {
      def map(a: V, f: Double => Double): V = VectorChunks.zip(a, a)((_, x, _) => f(x))
      def mapActive(a: V, f: Double => Double): V = map(a, f)
    }
  implicit val serverVectorTraverse: CanTraverseValues[V, Double] = new CanTraverseValues[V, Double] {
    def traverse(a: V, f: CanTraverseValues.ValuesVisitor[Double]): f.type = {
      VectorChunks.foreach(a)(f.visit)
      f
    }
    def isTraversableAgain(a: V): Boolean = true
  }
  implicit val serverVectorScalar: ScalarOf[V, Double] = ScalarOf.dummy
}
