package org.seraphim.spark

import scala.collection.mutable

/**
 * Frees the vectors that were made within it at its end, except those that are kept. Scopes are nested. The thread that
 * opened a scope uses it.
 *
 * {{{
 * val result = pool.scope { scope =>
 *   val temporary = x.copy().scale(2)
 *   scope.keep(temporary.add(y))
 * }
 * }}}
 */
final class Scope private[spark] (pool: VectorPool, private[spark] val parent: Option[Scope]) {
  private val slots = mutable.Set[Slot]()
  private[spark] val depth: Int = parent.fold(1)(_.depth + 1)
  @volatile private var hasEnded = false

  private[spark] def isEnded: Boolean = hasEnded

  private[spark] def add(slot: Slot): Unit = slots += slot

  /** Keeps a vector beyond the end of this scope: until that of the enclosing one, or as long as it is referred to. */
  def keep(vector: ServerVector): ServerVector = {
    vector.moveTo(parent)
    vector
  }

  /** Moves a content to a scope that ends later. The lock of the pool is held. */
  private[spark] def moveTo(slot: Slot, outer: Option[Scope]): Unit = {
    slots -= slot
    slot.scope = outer
    outer.foreach(_.add(slot))
  }

  private[spark] def end(release: Slot => Unit): Unit = {
    hasEnded = true
    slots.toList.foreach(release)
    slots.clear()
  }
}

private[spark] object Scope {
  val UseAfterEnd: String =
    "a vector is used after the end of its scope, or after its pool was closed: keep it with Scope.keep"
}
