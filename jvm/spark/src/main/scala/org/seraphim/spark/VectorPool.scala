package org.seraphim.spark

import scala.collection.mutable

import org.apache.spark.SparkContext
import org.apache.spark.rdd.RDD

import org.seraphim.client.{ClientOptions, FunctionCall, MatrixSpec, ParameterSession, PushIdentity, RefusedException}
import org.seraphim.client.{ServerMatrix => ClientMatrix}

/**
 * Makes [[ServerVector]]s of one dimension. They are rows of one matrix of doubles on the servers, `capacity` at most
 * at a time. The driver has the pool; executors use [[SharedVector]]s.
 *
 * Writes are sent without a wait; a fault of a write is thrown when its result is read. All methods throw a
 * `SeraphimException` if the service refuses a request or cannot be reached. Threads may share a pool.
 */
final class VectorPool private (val session: ParameterSession, matrix: ClientMatrix) extends AutoCloseable {
  private val memo = new RowMemo(matrix.rows)
  private val store = new RowStore(matrix, forget, () => memo.releaseRecent())
  private[spark] val products = new ProductCache(matrix, () => store.rows)
  private val evaluations = new Evaluations(this, products)
  private val tokens = new TokenBook
  private val currentScope = new ThreadLocal[Option[Scope]] {
    override def initialValue(): Option[Scope] = None
  }
  private val currentPlan = new ThreadLocal[Option[EvaluationPlan]] {
    override def initialValue(): Option[EvaluationPlan] = None
  }
  private val constants = mutable.Queue[(Any, ServerVector)]()
  private var isClosed = false

  /** Number of values of each vector. */
  def dimension: Long = matrix.columns

  /** Number of vectors that are computed at the same time. */
  def capacity: Int = matrix.rows

  /** Number of vectors that take memory on the servers now. */
  def used: Int = synchronized(store.used)

  /** How often this process has waited for the servers. */
  def waits: Long = session.waits

  /** How many inner products the servers have computed. */
  private[spark] def computedProducts: Long = synchronized(products.computed)

  /** A vector of zeros. It takes no memory until it is changed. */
  def zeros(): ServerVector = make(LinearCombination.Zero)

  /** A vector with `value` everywhere. */
  def fill(value: Double): ServerVector =
    if (value == 0.0) zeros() else make(LinearCombination.of(run(FunctionBuilder("set", Seq.empty, Some(value)))))

  /** A vector with these values. */
  def create(values: Array[Double]): ServerVector = {
    val vector = zeros()
    vector.push(values)
    vector
  }

  /** Runs `body`, and frees all vectors that it made, except those that the scope keeps. */
  def scope[A](body: Scope => A): A = {
    val outer = currentScope.get
    val scope = new Scope(this, outer)
    currentScope.set(Some(scope))
    try body(scope)
    finally {
      currentScope.set(outer)
      synchronized(scope.end(store.release))
    }
  }

  /** Waits until other processes see these vectors, and returns what they need to read them. One wait. */
  def share(vectors: ServerVector*): Seq[SharedVector] = synchronized {
    val rows = vectors.map(vector => vector.row())
    store.flush()
    rows.foreach(_.slot.throwIfFailed())
    rows.map(row => SharedVector(session.handle, matrix.name, row.number))
  }

  /** Frees all vectors, and ends the session. */
  override def close(): Unit = {
    synchronized {
      isClosed = true
      store.rows.toList.foreach(row => store.release(row.slot))
    }
    session.close()
  }

  private[spark] def make(content: LinearCombination): ServerVector =
    new ServerVector(this, content, currentScope.get)

  /** A row that is a combination. One that was computed before is used again. */
  private[spark] def rowOf(content: LinearCombination): Row = synchronized {
    checkOpen()
    if (content.size == 0) zeroRow
    else content.asRow.getOrElse(memo.getOrElse(content.key)(combine(content)))
  }

  /** The row that was computed for a combination, if it is still in use. */
  private[spark] def known(content: LinearCombination): Option[Row] = synchronized {
    content.asRow.orElse(memo.get(content.key))
  }

  /** The row of zeros, for all vectors of zeros that other processes read. It stays as long as the pool. */
  private lazy val zeroRow: Row = run(None, Seq(FunctionBuilder("set", Seq.empty, Some(0.0))))

  private def combine(content: LinearCombination): Row = (content.rows, content.factors) match {
    // The same values as with `combine`, in less time.
    case (Array(x, y), Array(1.0, -1.0)) => run(FunctionBuilder("sub", Seq(x, y)))
    case (Array(x, y), Array(-1.0, 1.0)) => run(FunctionBuilder("sub", Seq(y, x)))
    case (Array(x, y), Array(a, 1.0)) => run(FunctionBuilder("axpy", Seq(x, y), Some(a)))
    case (Array(x, y), Array(1.0, b)) => run(FunctionBuilder("axpy", Seq(y, x), Some(b)))
    case (rows, factors) =>
      run(FunctionBuilder.of("combine", rows.toSeq, new FunctionCall.Argument().numbers(factors: _*)))
  }

  /** Runs a push function into a new row, without a wait. */
  private[spark] def run(functions: FunctionBuilder*): Row = run(currentScope.get, functions)

  private def run(scope: Option[Scope], functions: Seq[FunctionBuilder]): Row = synchronized {
    checkOpen()
    val row = store.take(scope)
    write(row, functions.map(_.into(row.number)))
    row
  }

  /** Runs a program that gets a new row for its result and one for itself. It overwrites both before it reads them. */
  private[spark] def runProgram(program: (Row, Row) => Seq[FunctionCall]): Row = synchronized {
    checkOpen()
    val row = store.take(currentScope.get)
    val scratch = store.take(None)
    write(row, program(row, scratch))
    store.release(scratch.slot)
    row
  }

  private def write(row: Row, calls: Seq[FunctionCall]): Unit = {
    val write = matrix.pushRepeatableFunctions(calls: _*)
    row.slot.write = Some(write)
    store.sent(write)
  }

  /** The row that was computed for `key` before, if it is still in use, or a new one. Keys name rows by their tags. */
  private[spark] def memoized(key: Any)(compute: => Row): ServerVector = synchronized {
    make(LinearCombination.of(memo.getOrElse(key)(compute)))
  }

  /** A vector that stays for later calls with the same key, as long as there are few of them. */
  private[spark] def constant(key: Any)(compute: => ServerVector): ServerVector = synchronized {
    constants.find(_._1 == key).map(_._2).getOrElse {
      val made = withoutScope(compute)
      constants.enqueue((key, made))
      if (constants.size > VectorPool.Constants) constants.dequeue()
      made
    }
  }

  /**
   * Tells the pool that an objective was computed: `gradient` is the gradient at `w`. The pool asks for all inner
   * products that a quasi-Newton method needs next, in one wait. [[SparkObjective]] calls this; an objective of a
   * program may do so too. It changes no result.
   */
  def evaluated(w: ServerVector, gradient: ServerVector): Unit = synchronized {
    currentPlan.get.getOrElse(evaluations).evaluated(EvaluationLog.Evaluation(w.row(), gradient.row()))
  }

  /** Runs `body`, whose evaluations go to `plan`. */
  private[spark] def planned[A](plan: EvaluationPlan)(body: => A): A = {
    val outer = currentPlan.get
    currentPlan.set(Some(plan))
    try body finally currentPlan.set(outer)
  }

  /** Notes that a vector was computed as a difference. */
  private[spark] def subtracted(a: Row, b: Row, difference: Row): Unit =
    synchronized(evaluations.subtracted(a, b, difference))

  private def withoutScope[A](body: => A): A = {
    val scope = currentScope.get
    currentScope.set(None)
    try body finally currentScope.set(scope)
  }

  /** How a row was computed, if it was memoized. */
  private[spark] def origin(row: Row): Option[Any] = synchronized(memo.keyOf(row))

  /** Whether two vectors have the same values; 0.0 and -0.0 are the same. One wait, if their rows differ. */
  private[spark] def haveSameValues(a: Row, b: Row): Boolean = (a.tag == b.tag) || {
    val call = FunctionCall.of("first_difference", Array(a.number, b.number), Array.empty[Int])
    val answers = synchronized(matrix.pullFunction(call))
    a.slot.throwIfFailed()
    b.slot.throwIfFailed()
    !answers.hasPresent
  }

  /** Waits for the write of a row, and throws what prevented it. */
  private[spark] def await(row: Row): Unit = {
    row.slot.write.foreach(write => matrix.await(java.util.Collections.singletonList(write)))
  }

  private[spark] def dot(a: LinearCombination, b: LinearCombination): Double = synchronized {
    checkOpen()
    products.dot(a, b)
  }

  private[spark] def reduce(name: String, row: Row): Double = {
    val answers = matrix.pullFunction(FunctionCall.of(name, Array(row.number), Array.empty[Int]))
    row.slot.throwIfFailed()
    answers.sum()
  }

  private[spark] def pull(row: Row, column: Long, out: Array[Double], count: Int): Unit = {
    matrix.pull(row.number, column, out, 0, count)
    row.slot.throwIfFailed()
  }

  /**
   * Refuses sums over these data if the servers have no room for the parts of `rows` sums beside the vectors: as many
   * tasks as run at once stage a part each, with the numbers of its columns, until it is committed.
   */
  private[spark] def checkRoomForSums(data: RDD[_], rows: Int): Unit = {
    val context = data.sparkContext
    val slots = context.defaultParallelism / context.getConf.getInt("spark.task.cpus", 1)
    checkRoomForParts(Math.multiplyExact(math.max(1, math.min(data.getNumPartitions, slots)), rows))
  }

  private def checkRoomForParts(parts: Int): Unit = synchronized {
    checkOpen()
    // The servers add up what they have when a matrix is created. Its rows take no memory, because nothing is written.
    try session.drop(session.createMatrix(new MatrixSpec(VectorPool.PartsName, 2 * parts, dimension, 2 * session.laneCount)))
    catch {
      case fault: RefusedException.TooLarge =>
        throw new NoRoomException(parts, capacity, dimension, fault)
    }
  }

  /** A row of zeros to which other processes will push. */
  private[spark] def accumulator(): Row = run(FunctionBuilder("set", Seq.empty, Some(0.0)))

  /** Writes values to a new row: it is set to zeros, and the values are added once, whatever happens on the way. */
  private[spark] def rowWith(next: Long => Array[Double]): Row = {
    val row = accumulator()
    val token = tokens.next()
    try {
      val staged = matrix.stage(new PushIdentity(token, 0, 0))
      var column = 0L
      while (column < dimension) {
        val values = next(column)
        staged.add(row.number, column, values, 0, values.length)
        column += values.length
      }
      staged.commit()
      row.slot.throwIfFailed()
      row
    } finally {
      finishToken(token, Seq(row))
    }
  }

  private[spark] def nextToken(): Long = tokens.next()

  /** Closes a token at the servers, without a wait. Its attempts push to `targets`. */
  private[spark] def finishToken(token: Long, targets: Seq[Row]): Unit = synchronized {
    for (largest <- tokens.finish(token, targets) if !isClosed) store.sent(matrix.closeToken(largest))
  }

  private def checkOpen(): Unit = if (isClosed) throw new IllegalStateException(Scope.UseAfterEnd)

  private def forget(slot: Slot): Unit = {
    products.forget(slot)
    memo.forget(slot)
  }
}

object VectorPool {
  private val Constants = 2
  private val PartsName = "parts of sums"
  /** A pool on the rows of a matrix that nothing else uses. */
  private[spark] def on(session: ParameterSession, matrix: ClientMatrix): VectorPool = new VectorPool(session, matrix)

  /** Vectors of a pool unless told otherwise: L-BFGS with m = 10 needs about 30. */
  val DefaultCapacity = 48

  /**
   * Opens a session with the servers of an application: those that [[SeraphimPlugin]] has started, or the cluster that
   * `spark.seraphim.master` names.
   */
  def open(context: SparkContext, dimension: Long, capacity: Int): VectorPool =
    PoolOpener.open(context, dimension, capacity)

  /**
   * Opens a session at the master `HOST:PORT`, and makes room for `capacity` vectors of `dimension` doubles.
   *
   * @param secret the shared secret of the service, empty if it has none
   */
  def open(
      master: String,
      dimension: Long,
      capacity: Int = DefaultCapacity,
      secret: Array[Byte] = Array.empty,
      name: String = "spark",
      options: ClientOptions = ClientOptions.defaults()): VectorPool = {
    val session = ParameterSession.open(master, secret, name, options)
    try {
      val spec = new MatrixSpec("vectors", capacity, dimension, 2 * session.laneCount)
      new VectorPool(session, session.createMatrix(spec))
    } catch {
      case fault: Throwable =>
        session.close()
        throw fault
    }
  }
}

/** The servers have no room for the parts of a sum that are under way at once. */
final class NoRoomException(parts: Int, capacity: Int, columns: Long, cause: Throwable)
    extends RuntimeException(
      s"the servers have too little memory: $capacity vectors and $parts parts of sums at once, each with $columns " +
        s"values, need ${(capacity + 2L * parts) * columns * 8} bytes on all servers together; use more servers, set " +
        s"a higher limit (spark.seraphim.memory), or use fewer vectors (VectorPool.open, capacity). ${cause.getMessage}",
      cause)
