"""Loss, gradient and curvature of the classifiers, and the solvers that certify how near the optimum they came.

loss         what is summed over records: value, gradient, curvature
residual     prediction minus label, accurate however sure the prediction is
parameter    from a parameter to coefficients and intercepts, and back
response     how far one record can move the sum of the records' responses
problem      what to fit, and what a fit found
certificate  how far an iterate is from the optimum at most, rounding included
solver       one fit over a stream of row blocks
diagnosis    why a fit has no optimum
batch        thousands of small fits at once
inference    standard errors, z, p and intervals of a fit
sensitivity  how far a penalised optimum moves when a record or a party changes

Throughout, `l2` is the coefficient of (l2 / 2) ||theta||^2 added to the *sum* of the losses (1/C of scikit-learn), and
a parameter vector is the coefficients, then the intercept last.
"""
