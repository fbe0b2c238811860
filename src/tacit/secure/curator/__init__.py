"""Averaging through a curator: all learn the sum of the parties' vectors, with noise as the smallest party needs it.

Parties   K parties, of which the first has a part of its own, and a curator, Charlie. Messages between parties are
          letters that Charlie carries and cannot read
Trust     parties may be anybody's: their keys are pinned (`letter`). Charlie is honest but curious, and nothing checks
          him: see `methods.curator.method` for what he gains by lying. Sizes stay secret if the first party and Charlie
          do not collude. The noise stays unknown whoever colludes, but for the shares of it that colluding parties made
          themselves
Travels   1. Sizes: every party -> first: a share of its size, and the other share under Charlie's Paillier key. First
          -> Charlie: both, in an order that only the first knows, its own part under its own key. Charlie -> first:
          that part, blinded, in a second order that only Charlie knows. Then comparisons, pair by pair: first ->
          Charlie: encrypted bits; Charlie -> first: masked tests; first -> Charlie: masked outcomes
          2. Noise: Charlie -> first: an encrypted 1 for the smallest among encrypted 0s. First -> every party: its own
          one. Party -> first: that, times its factor; first -> every party: the sum of these, the smallest party's
          factor, still encrypted. Party -> Charlie: that, times the party's noise, plus a mask
          3. Shares: every participant -> every other: a fresh share of what it holds. Then all publish the sums of what
          they got
Revealed  the sum of the published shares, to everybody. To Charlie, the order of K numbers in an order that he does not
          know: a uniformly random order, since ties are broken at random. To the first party, the same in another order
          that it does not know. Nothing else to anybody, but for statistical distances of 2^-40
Privacy   none of its own: `methods.curator` sizes the noise and says what the sum costs
Assumes   sizes below 2^size_bits, noise and factors within the public bounds of the terms; each party checks its own
Cost      8 + 2 ceil(log2 K) deliveries to parties, one after the other; K - 1 comparisons of about 60 bits, one
          encryption a bit; K^2 letters
Paper     Pathak, Rane and Raj 2010, section 3.2. Where we depart from it: (1) Integers "chosen uniformly at random" do
          not exist: shares of sizes are uniform modulo a power of two, and what passes through encryption is masked by
          40 bits or more beyond its range. (2) Their parties share one private key and one permutation, and each sends
          its own share to Charlie under a permuted index, which tells Charlie the permutation; here the first party
          alone has that key and that permutation, and hands all shares on. (3) Equal sizes would show in the
          comparisons; a random number breaks ties. (4) The noise of the smallest party is known to it; here the
          smallest party's *factor* is selected and each party's own share of the noise is multiplied by it.
          `selects="noise"` is as they print it. (5) One party masks the noise from Charlie, and both together know it;
          here every party masks. (6) Shares are fresh when they are published
"""
