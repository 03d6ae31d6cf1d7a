package org.seraphim.spark

import breeze.optimize.DiffFunction
import org.apache.spark.TaskContext
import org.apache.spark.rdd.RDD

import org.seraphim.client.PushIdentity

/**
 * A sum over the partitions of an RDD, with its gradient, as the optimizers of breeze need it: the objective is the sum
 * of what `evaluate` returns for each partition, plus `0.5 * l2 * |w|^2`.
 *
 * A task pulls w from the servers, and stages its part of the gradient there under the token of the evaluation and the
 * number of its partition. Each partition counts once, whatever Spark runs again. The driver gets one number from each
 * task. Losses are added in the order of partitions.
 *
 * @param evaluate gets the records of a partition, w, and an array of zeros for the gradient; it returns the sum of the
 *                 losses. It runs on executors.
 * @param isReproducible whether the gradient has the same last bits in each run: each partition has a row of its own,
 *                       and rows are added in their order. The pool must have room for them. Otherwise parts are added
 *                       as they arrive.
 */
final class SparkObjective[T](
    data: RDD[T],
    pool: VectorPool,
    l2: Double = 0.0,
    isReproducible: Boolean = false)(evaluate: (Iterator[T], Array[Double], Array[Double]) => Double)
    extends DiffFunction[ServerVector] {

  @volatile private var count = 0L

  checkRoom()

  /** What would fail in the middle of an optimization is told before it. */
  private def checkRoom(): Unit = {
    val partitions = data.getNumPartitions
    if (isReproducible && partitions >= pool.capacity) {
      throw new IllegalArgumentException(
        s"a reproducible sum needs a vector for each of the $partitions partitions, and the pool has ${pool.capacity}; " +
          s"open it with ${partitions + VectorPool.DefaultCapacity}, or use fewer partitions (coalesce)")
    }
    pool.checkRoomForSums(data, rows = 1)
  }

  /** How often the objective was computed. */
  def evaluations: Long = count

  override def calculate(w: ServerVector): (Double, ServerVector) = {
    count += 1
    val rows = Seq.fill(if (isReproducible) data.getNumPartitions else 1)(pool.accumulator())
    val gradient = pool.make(rows.map(LinearCombination.of).reduce(_.plus(1.0, _)))
    val targets = rows.map(row => pool.make(LinearCombination.of(row)))
    val shared = pool.share(w +: targets: _*)
    val token = pool.nextToken()
    val losses = try run(shared.head, shared.tail, token) finally pool.finishToken(token, rows)
    val total = computed(gradient.axpy(l2, w))
    pool.evaluated(w, total)
    (losses.sum + (if (l2 == 0.0) 0.0 else 0.5 * l2 * w.dot(w)), total)
  }

  /** Computes a sum at once: its parts are not needed any more. */
  private def computed(vector: ServerVector): ServerVector = {
    vector.row()
    vector
  }

  private def run(w: SharedVector, targets: Seq[SharedVector], token: Long): Array[Double] = {
    val task = new SparkObjective.Task(evaluate, w, targets, token)
    data.sparkContext.runJob(data, (context: TaskContext, records: Iterator[T]) => task.run(context, records))
  }
}

private object SparkObjective {

  /** What a task does. */
  final class Task[T](
      evaluate: (Iterator[T], Array[Double], Array[Double]) => Double,
      w: SharedVector,
      targets: Seq[SharedVector],
      token: Long)
      extends Serializable {

    def run(context: TaskContext, records: Iterator[T]): Double = {
      val part = context.partitionId()
      val matrix = w.serverMatrix
      val weights = matrix.pull(w.row)
      val gradient = new Array[Double](weights.length)
      val loss = evaluate(records, weights, gradient)
      // Attempts of different stages and tasks have different numbers within a SparkContext.
      val identity = new PushIdentity(token, part, context.taskAttemptId())
      matrix.stage(identity).add(targets(part % targets.size).row, gradient).commit()
      loss
    }
  }
}
