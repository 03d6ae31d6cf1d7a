package org.seraphim.spark

import breeze.linalg.DenseVector
import breeze.optimize.{DiffFunction, LBFGS}

import org.seraphim.client.{FunctionCall, TestServers}
import org.seraphim.spark.ServerVectorSpace._

/**
 * Measures the time per iteration of breeze's L-BFGS itself, without its objective, on vectors in the driver and on
 * servers. The objective is `0.5 sum h_i (w_i - t)^2` with h in (0, 1]. It prints the mean over iterations when the
 * history is full.
 *
 * Arguments: number of columns, `driver`, `servers` or `gram` ([[GramLBFGS]] on servers), number of iterations, number of
 * pairs (10).
 */
object OptimizerBenchmark {
  /** The optimum: near to 0, because the first step of breeze has the length 1. */
  private val Target = 1e-3

  private abstract class Timed[V](prepare: V => Unit, finish: (V, V) => Unit) extends DiffFunction[V] {
    var nanos = 0L
    def compute(w: V): (Double, V)

    override def calculate(w: V): (Double, V) = {
      prepare(w)
      val start = System.nanoTime()
      val (value, gradient) = compute(w)
      nanos += System.nanoTime() - start
      finish(w, gradient)
      (value, gradient)
    }
  }

  private def curvature(i: Int): Double = (1.0 + i % 1000) / 1000

  def main(arguments: Array[String]): Unit = {
    val columns = arguments(0).toInt
    val iterations = arguments(2).toInt
    val pairs = arguments.lift(3).fold(10)(_.toInt)
    arguments(1) match {
      case "driver" => driver(columns, iterations, pairs)
      case "servers" => servers(columns, iterations, pairs, new LBFGS[ServerVector](iterations, pairs, 0.0))
      case "gram" => servers(columns, iterations, pairs, new GramLBFGS(iterations, pairs, 0.0))
    }
  }

  private def driver(columns: Int, iterations: Int, pairs: Int): Unit = {
    val objective = new Timed[DenseVector[Double]](_ => (), (_, _) => ()) {
      override def compute(w: DenseVector[Double]): (Double, DenseVector[Double]) = {
        val gradient = new Array[Double](columns)
        var loss = 0.0
        var i = 0
        while (i < columns) {
          gradient(i) = curvature(i) * (w.data(i) - Target)
          loss += 0.5 * gradient(i) * (w.data(i) - Target)
          i += 1
        }
        (loss, DenseVector(gradient))
      }
    }
    val optimizer = new LBFGS[DenseVector[Double]](iterations, pairs, 0.0)
    val states = optimizer.iterations(objective, DenseVector.zeros[Double](columns))
    measure(states.map(_.value), objective, pairs, () => 0L)
  }

  private def servers(columns: Int, iterations: Int, pairs: Int, optimizer: LBFGS[ServerVector]): Unit = {
    val service = TestServers.start("--memory-limit", "12GiB")
    val pool = VectorPool.open(service.address, columns.toLong, 2 * pairs + 20)
    // Random on the servers, so that the driver never has an array of all columns.
    val uniform = new FunctionCall.Argument().whole(1).number(1e-3).number(1.0)
    val h = pool.make(LinearCombination.of(pool.run(FunctionBuilder.of("uniform", Seq.empty, uniform))))
    val target = pool.fill(Target)
    val objective = new Timed[ServerVector](w => pool.share(w), (w, gradient) => pool.evaluated(w, gradient)) {
      override def compute(w: ServerVector): (Double, ServerVector) = {
        val difference = w.minus(target)
        val gradient = difference.zip("mul", h)
        (0.5 * gradient.zip("mul", difference).reduce("sum"), gradient)
      }
    }
    measure(optimizer.iterations(objective, pool.zeros()).map(_.value), objective, pairs, () => pool.waits)
    println(f"products per iteration ${pool.computedProducts.toDouble / iterations}%.1f")
    pool.close()
    service.close()
  }

  private def measure(values: Iterator[Double], objective: Timed[_], pairs: Int, waits: () => Long): Unit = {
    var start = (System.nanoTime(), 0L, 0L)
    var last = Double.NaN
    var count = 0
    for (value <- values) {
      count += 1
      last = value
      if (count == pairs + 2) start = (System.nanoTime(), objective.nanos, waits())
    }
    val steps = count - pairs - 2
    val own = (System.nanoTime() - start._1 - (objective.nanos - start._2)) / 1e6 / steps
    val inObjective = (objective.nanos - start._2) / 1e6 / steps
    println(f"$steps iterations: optimizer $own%.0f ms, objective $inObjective%.0f ms, " +
      f"waits ${(waits() - start._3).toDouble / steps}%.1f per iteration, value $last")
    println(f"heap in use ${(Runtime.getRuntime.totalMemory - Runtime.getRuntime.freeMemory) / 1e6}%.0f MB")
  }
}
