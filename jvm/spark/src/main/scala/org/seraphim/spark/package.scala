package org.seraphim

/**
 * Vectors on parameter servers for Spark jobs.
 *
 * A [[spark.VectorPool]] has a session with the servers and makes [[spark.ServerVector]]s, whose values never come to
 * the driver. The optimizers of breeze run on them unchanged, with the instances of [[spark.ServerVectorSpace]].
 * [[spark.SparkObjective]] sums the gradients of an RDD on the servers.
 */
package object spark
